/** A failed connection reports why, with both versions where they are known. */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import type { ChildProcess } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { test } from "node:test";
import { trailerBytes, versionOf, withTrailer, withVersion } from "../../src/ucx/address.ts";
import { checkVersions, explainFailure } from "../../src/ucx/listen/connect_failure.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { ownIdentity } from "../../src/ucx/process_identity.ts";
import { patiently, runScriptForJson, startScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { ucxOfWheel, wheelAdvice } from "../support/wheel_ucx.ts";

const version = fc.tuple(fc.integer({ min: 13, max: 24 }), fc.nat(5)).map(([minor, patch]) => `1.${minor}.${patch}`);

test("an address contains the version of its UCX", async () => {
  await check(fc.property(fc.uint8Array({ minLength: 1 }), version, (bytes, version) => {
    assertEquals(versionOf(withTrailer(withVersion(bytes, version), ownIdentity())), version);
  }));
});

test("versions of which one would end the process are refused, in either role, with both in the error", async () => {
  await check(fc.property(version, version, (here, there) => {
    const [older = 0, newer = 0] = [here, there].map((one) => Number(one.split(".")[1])).toSorted((a, b) => a - b);
    if (!(older < 14 && newer >= 21) && !(older < 19 && newer >= 22)) return checkVersions(here, there);
    const error = assertThrows(() => checkVersions(here, there), UcxError);
    assertEquals(error.statusName, "UCS_ERR_UNSUPPORTED");
    assertStringIncludes(error.message, `This side has UCX ${here}, the other side ${there}`);
  }));
});

test("the address of a worker whose UCX does not understand ours is refused, unless it is not to be checked", async () => {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  const minor = Number(ucx.version.split(".")[1]);
  const refused = minor < 19 ? ["1.22.0"] : minor < 21 ? [] : minor < 22 ? ["1.13.1"] : ["1.13.1", "1.18.1"];
  const raw = worker.address.subarray(0, -trailerBytes - 4); // 4: the version
  for (const version of refused) {
    const address = withTrailer(withVersion(raw, version), ownIdentity());
    const error = await assertRejects(() => worker.connect(address), UcxError);
    assertEquals(error.statusName, "UCS_ERR_UNSUPPORTED");
    assertStringIncludes(error.message, `This side has UCX ${ucx.version}, the other side ${version}`);
    const endpoint = await worker.connect(address, { unchecked: true }); // it is this worker's in truth
    await Promise.all([endpoint.send(Uint8Array.of(5)), worker.recv(new Uint8Array(1))]);
  }
  for (const version of ["1.19.0", "1.20.0", ucx.version]) {
    await worker.connect(withTrailer(withVersion(raw, version), ownIdentity()));
  }
});

const knowing = { secret: "proved", errors: "peer", isGreeting: false } as const;

test("each UCX failure includes what is known of the versions, and other errors are unchanged", () => {
  const attempt = { to: { host: "10.0.0.1", port: 5 }, version: "1.13.1", greets: false, ...knowing };
  // reset, timeout of the endpoint, unreachable, timed out, invalid parameter
  for (const status of [-25, -80, -6, -20, -5]) {
    const explained = explainFailure(new UcxError("ucp_ep_create", status), { ...attempt, listenersVersion: "1.14.1" });
    assertInstanceOf(explained, UcxError);
    assertEquals(explained.status, status);
    assertStringIncludes(explained.message, "This side has UCX 1.13.1, the other side 1.14.1");
  }
  const rejected = explainFailure(new UcxError("ucp_ep_create", -23), {
    ...attempt,
    secret: "none",
    listenersVersion: null,
  });
  assertInstanceOf(rejected, UcxError);
  assertStringIncludes(rejected.message, "UCX 1.13.1, the other side's version is not known here");
  const other = new TypeError("something else");
  assert(explainFailure(other, { ...attempt, listenersVersion: null }) === other);
});

test("every failure that different errors may cause names them as this side has them", () => {
  for (const errors of ["peer", "none"] as const) {
    for (const [secret, greets] of [["none", false], ["none", true], ["proved", false]] as const) {
      const to = { host: "10.0.0.1", port: 5 };
      const attempt = { to, version: "1.13.1", greets, isGreeting: false, secret, errors, listenersVersion: null };
      for (const status of [-24, -25, -80, -20]) { // not connected, reset, timeout of the endpoint, timed out
        const explained = explainFailure(new UcxError("ucp_ep_create", status), attempt);
        assertInstanceOf(explained, UcxError);
        assertStringIncludes(explained.message, `have { errors: "${errors}" }`);
      }
    }
  }
});

/** A wheel's library, and the system's. */
const named = ucxOfWheel() ?? undefined;
const system = "/usr/lib/x86_64-linux-gnu/libucp.so.0";
const reason = named === undefined || !existsSync(system) || realpathSync(named) === realpathSync(system)
  ? `one UCX alone: ${wheelAdvice}`
  : null;

for (const secret of ["-", "s3cret"]) {
  const how = secret === "-" ? "by a listener" : "with a secret";
  const name = `two versions connect, or end in an error that names them, in both roles: ${how}`;
  test(...withPatience(...needs(reason, name)), async () => {
    for (const [here, there] of [[named, system], [system, named]]) {
      const script = new URL("versions_child.ts", import.meta.url);
      const env = (library: string | undefined) => ({ CAUSEWAY_LIBUCP: library, UCX_LOG_FILE: "stderr" });
      const listening = startScript(script, { args: ["listen", "-", secret, "peer"], env: env(there) });
      try {
        const [port = "", theirs = ""] = await firstLine(listening);
        const args = ["connect", port, secret, "peer"];
        const { outcome, version } = await runScriptForJson(script, { args, env: env(here), timeout: 20_000 }) as {
          outcome: string;
          version: string;
        };
        if (outcome === "connected") continue;
        assertStringIncludes(outcome, `This side has UCX ${version}`);
        if (secret !== "-") assertStringIncludes(outcome, `the other side ${theirs}`);
      } finally {
        listening.kill("SIGKILL");
      }
    }
  });
}

for (const [theirs, ours] of [["none", "peer"], ["peer", "none"]] as const) {
  test(
    `a listener with errors "${theirs}" and a client with "${ours}" do not connect, for that reason`,
    patiently,
    async () => {
      // It said that nobody listens, the listener asks for a secret, or does not speak UCX: none was true. There are
      // two processes, since UCX 1.13 has ended one that had both sides with a failed assertion
      // (uct_tcp_sockcm_ep_progress_send).
      const script = new URL("versions_child.ts", import.meta.url);
      const listening = startScript(script, { args: ["listen", "-", "-", theirs], env: { UCX_LOG_FILE: "stderr" } });
      try {
        const [port = ""] = await firstLine(listening);
        const { outcome } = await runScriptForJson(script, { args: ["connect", port, "-", ours] }) as {
          outcome: string;
        };
        assertStringIncludes(outcome, `have { errors: "${ours}" }`);
      } finally {
        listening.kill("SIGKILL");
      }
    },
  );
}

function withPatience(name: string, options: object): [string, object] {
  return [name, { ...options, ...patiently }];
}

/** The port and the version that a listener prints. */
async function firstLine(child: ChildProcess): Promise<string[]> {
  let text = "";
  for await (const chunk of child.stdout ?? []) {
    text += chunk;
    const found = /^PORT (.*)$/m.exec(text);
    if (found !== null && text.includes("\n")) return found[1]?.split(" ") ?? [];
  }
  throw new Error(`no port: ${text}`);
}
