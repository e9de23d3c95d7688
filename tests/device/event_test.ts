/** Events: the time between two of them, or why it cannot be measured. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaError } from "../../mod.ts";
import { check, fc } from "../support/property.ts";

/** The possible states of an event. */
const pasts = ["untimed", "new", "enqueued", "done"] as const;

test("the time between two events is returned, or the error says why it cannot be measured", () => {
  check(
    fc.property(fc.constantFrom(...pasts), fc.constantFrom(...pasts), (first, second) => {
      using cuda = Cuda.simulate({ schedule: "latest" });
      const device = cuda.device(0);
      using stream = device.createStream();
      const both = [first, second].map((past) => {
        const event = device.createEvent({ timing: past !== "untimed" });
        if (past === "done") stream.record(event);
        return { event, past };
      });
      stream.synchronize();
      for (const { event, past } of both) if (past === "enqueued") stream.record(event);
      const [from, to] = both.map(({ event }) => event);
      if (from === undefined || to === undefined) return;
      const time = () => to.millisecondsSince(from);
      if (first === "untimed") {
        assertThrows(time, TypeError, "Cannot measure time from an event that was created without");
      } else if (second === "untimed") {
        assertThrows(time, TypeError, "Cannot measure time to an event that was created without");
      } else if (first === "new" || second === "new") {
        const which = first !== "new"
          ? "The second event was not"
          : second !== "new"
          ? "The first event was not"
          : "Neither";
        const error = assertThrows(time, CudaError, `${which}`);
        assertEquals(error.codeName, "CUDA_ERROR_INVALID_HANDLE");
        assertEquals(error.message.includes("stream.record(event) before the measured work"), true, error.message);
      } else if (first === "enqueued" || second === "enqueued") {
        assertThrows(time, CudaError, "The work before one of the two events has not completed");
      } else assertEquals(time() >= 0, true);
      for (const { event } of both) event.close();
    }),
    60,
  );
});

test("an event of another library may measure time: the driver decides", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using event = device.createEvent({ timing: true });
  stream.record(event);
  stream.synchronize();
  assertEquals(event.millisecondsSince(event), 0);
});
