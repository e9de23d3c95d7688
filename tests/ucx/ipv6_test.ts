/** Connections over IPv6, which UCX 1.14 and newer make: everything that works over IPv4 works over IPv6. */
import { assert } from "@std/assert";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { Ucx } from "../../src/ucx/ucx.ts";
import { isBefore } from "../../src/ucx/version.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { ucxOfWheel, wheelAdvice } from "../support/wheel_ucx.ts";

const script = new URL("./ipv6_child.ts", import.meta.url);

function versionHere(): string {
  using ucx = Ucx.open();
  return ucx.version;
}

const here = versionHere();
const library = !isBefore(here, 14) ? undefined : ucxOfWheel() ?? undefined;
const addresses = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
const reason = !addresses.some(({ address }) => address === "::1")
  ? "no IPv6 here: it is turned off in the system"
  : !isBefore(here, 14) || library !== undefined
  ? null
  : `UCX ${here} is older than 1.14: ${wheelAdvice}`;

for (
  const [which, name] of Object.entries({
    native: "a listener at ::1 and its clients talk to each other: as UCX does",
    secret: "a listener at ::1 and its clients talk to each other: with a secret",
    refused: "an IPv4 address is refused where UCX uses IPv6: it could not connect",
  })
) {
  const [title, options] = needs(reason, name);
  test(title, { ...options, ...patiently }, async () => {
    const env = library === undefined ? {} : { CAUSEWAY_LIBUCP: library };
    // Before 1.17, UCX takes the setting from the environment alone.
    const family = library === undefined && isBefore(here, 17) ? { UCX_TCP_AF_PRIO: "inet6" } : {};
    const version = await runScriptForJson(script, { args: [which], env: { ...env, ...family } });
    assert(typeof version === "string" && !isBefore(version, 14), `${version}`);
  });
}
