/** Setting names are checked, those of transports too: a misspelled one is an error, not a warning from UCX. */
import { assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { test } from "node:test";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { check, fc } from "../support/property.ts";

/** Transport settings that every UCX has, with valid values. */
const known = {
  TCP_NODELAY: "y",
  TCP_KEEPIDLE: "5s",
  TCP_PORT_RANGE: "0",
  TCP_CM_REUSEADDR: "y",
  SYSV_FIFO_SIZE: "256",
  POSIX_FIFO_SIZE: "256",
  SELF_SEG_SIZE: "8k",
};
const names = Object.keys(known) as (keyof typeof known)[];

test("a misspelled name of a transport's setting is an error that names it, and the correct name is not", async () => {
  const misspelled = fc.tuple(fc.constantFrom(...names), fc.nat(30), fc.boolean()).map(([name, place, isMore]) => {
    const start = name.indexOf("_") + 1;
    const at = start + place % (name.length - start);
    return { name, wrong: name.slice(0, at) + (isMore ? "Q" : "") + name.slice(isMore ? at : at + 1) };
  });
  await check(
    fc.property(misspelled, fc.constantFrom("", "UCX_"), ({ name, wrong }, prefix) => {
      const error = assertThrows(() => Ucx.open({ config: { [prefix + wrong]: known[name] } }), UcxError);
      assertEquals(error.statusName, "UCS_ERR_NO_ELEM", wrong);
      assertEquals(error.message.includes(`no setting UCX_${wrong}`), true, error.message);
      Ucx.open({ config: { [prefix + name]: known[name] } }).close();
    }),
    20,
  );
});

test("settings of unavailable transports, and those that several have in common, are not refused as misspelled", () => {
  using ucx = Ucx.open();
  const isNew = Number(ucx.version.split(".")[1]) >= 20;
  for (
    const name of ["GDR_COPY_BW", "ROCM_COPY_BW", "MM_FIFO_SIZE", "IB_GID_INDEX", "RC_TX_QUEUE_LEN"]
  ) {
    try {
      Ucx.open({ config: { [name]: "1" } }).close();
    } catch (error) { // newer versions do not know them in that case
      assertInstanceOf(error, UcxError);
      assertEquals([error.statusName, isNew], ["UCS_ERR_NO_ELEM", true], error.message);
    }
  }
});
