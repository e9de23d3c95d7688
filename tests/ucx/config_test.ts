/** Setting names are checked, those of transports too: a misspelled one is an error, not a warning from UCX. */
import { assert, assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { applyConfig, checkTransportSettings, familyOfTcp } from "../../src/ucx/config.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { isBefore } from "../../src/ucx/version.ts";
import { check, fc } from "../support/property.ts";
import { ScriptedUcp } from "./scripted_ucp.ts";

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
function versionHere(): string {
  using ucx = Ucx.open();
  return ucx.version;
}

const names = Object.keys(known) as (keyof typeof known)[];

const version = versionHere();

test("a misspelled name of a transport's setting is an error, and so is the correct one where UCX would ignore it", async () => {
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
      const open = () => Ucx.open({ config: { [prefix + name]: known[name] } }).close();
      if (isBefore(version, 17)) assertThrows(open, TypeError, `UCX_${name}=${known[name]}`);
      else open();
    }),
    20,
  );
});

test("settings of unavailable transports, and those that several have in common, are not refused as misspelled", () => {
  using ucx = Ucx.open();
  const isNew = !isBefore(ucx.version, 18);
  for (
    const name of ["GDR_COPY_BW", "ROCM_COPY_BW", "MM_FIFO_SIZE", "IB_GID_INDEX", "RC_TX_QUEUE_LEN"]
  ) {
    try {
      Ucx.open({ config: { [name]: "1" } }).close();
    } catch (error) { // newer versions do not know them in that case, and what one knows may not accept this value
      assertInstanceOf(error, UcxError);
      if (error.statusName === "UCS_ERR_INVALID_PARAM") continue;
      assertEquals([error.statusName, isNew], ["UCS_ERR_NO_ELEM", true], error.message);
    }
  }
});

test("IPv6 is used if TCP_AF_PRIO says so and UCX has it, which 1.13 does not", async () => {
  const value = fc.constantFrom(undefined, "inet6", "inet", "inet6,inet", "inet,inet6");
  const minor = fc.integer({ min: 13, max: 23 });
  await check(fc.property(minor, value, value, fc.constantFrom("", "UCX_"), (minor, setting, inherited, prefix) => {
    assertEquals(process.env["UCX_TCP_AF_PRIO"], undefined, "run this test without UCX_TCP_AF_PRIO");
    if (inherited !== undefined) process.env["UCX_TCP_AF_PRIO"] = inherited;
    try {
      const settings: Record<string, string> = setting === undefined ? {} : { [`${prefix}TCP_AF_PRIO`]: setting };
      const isIpv6 = minor >= 14 && (setting ?? inherited)?.startsWith("inet6") === true;
      assertEquals(familyOfTcp(`1.${minor}.0`, settings), isIpv6 ? 6 : 4);
    } finally {
      delete process.env["UCX_TCP_AF_PRIO"];
    }
  }));
});

test("a transport's own settings have an effect, or are refused", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const range = { TCP_PORT_RANGE: "20451-20460" };
  const open = () => Ucx.open({ config: { TLS: "tcp", ...range } });
  checkTransportSettings("1.17.0", range);
  assertThrows(() => checkTransportSettings("1.16.0", range), TypeError, "with UCX 1.16.0");
  if (isBefore(ucx.version, 17)) return void assertThrows(open, TypeError, "UCX_TCP_PORT_RANGE=20451-20460");
  using limited = open();
  await using worker = limited.createWorker();
  assert(worker.address.length > 0);
  const ports = readFileSync("/proc/self/net/tcp", "utf8").matchAll(/^ *\d+: \w+:(\w{4}) 00000000:0000 0A/gm);
  assert(Array.from(ports, ([, hex]) => parseInt(hex ?? "", 16)).some((port) => port >= 20451 && port <= 20460));
});

// Ubuntu 24.04's 1.16.0 ended the process when a peer died in the middle of messages.
test("the protocols that were new in UCX 1.16 are off there, unless the environment has a say", async () => {
  const minor = fc.integer({ min: 13, max: 23 });
  await check(fc.property(minor, fc.constantFrom(undefined, "y", "n"), (minor, inherited) => {
    const { functions } = new ScriptedUcp();
    const set = new Map<string, string>();
    const text = (bytes: unknown) => {
      assertInstanceOf(bytes, Uint8Array);
      return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
    };
    const modify = (_: bigint, name: unknown, value: unknown) => {
      set.set(text(name), text(value));
      return 0;
    };
    const ucp = { ...functions, opening: { ...functions.opening, ucp_config_modify: modify } };
    if (inherited !== undefined) process.env["UCX_PROTO_ENABLE"] = inherited;
    try {
      applyConfig(ucp, `1.${minor}.0`, 1n, {});
    } finally {
      delete process.env["UCX_PROTO_ENABLE"];
    }
    assertEquals(set.get("PROTO_ENABLE"), minor === 16 && inherited === undefined ? "n" : undefined);
  }));
});
