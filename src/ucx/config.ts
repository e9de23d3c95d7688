/**
 * UCX settings: Causeway's defaults and the caller's.
 *
 * @module
 */
import { UCS_CONFIG_PRINT, ucs_status_t } from "../../bindings/ucp_types.ts";
import { RTLD } from "../../bindings/libc.ts";
import { cString, ffiPort, libc } from "../ffi/mod.ts";
import { checkStatus, UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { printInfo } from "./print_info.ts";
import { isBefore } from "./version.ts";

/**
 * Applies settings to a `ucp_config_t`: first Causeway's defaults, then the caller's.
 *
 * @param settings by name, with or without the prefix `UCX_`
 * @throws {UcxError} if this UCX does not know a setting, or rejects its value
 */
export function applyConfig(
  ucp: UcpFunctions,
  version: string,
  config: bigint,
  settings: Readonly<Record<string, string>>,
): void {
  const { ucp_config_modify } = ucp.opening;
  for (const [name, value] of Object.entries(defaults(version, settings))) {
    // A UCX that does not know the setting does not need it either.
    ucp_config_modify(config, cString(name), cString(value));
  }
  const entries = Object.entries(settings);
  if (entries.length === 0) return;
  const own = ownSettings(ucp, config);
  for (const [given, value] of entries) {
    const name = given.replace(/^UCX_/, "");
    const isKnown = own.size === 0 || own.has(name) || families.has(name.split("_")[0] ?? "");
    const status = isKnown ? ucp_config_modify(config, cString(name), cString(value)) : ucs_status_t.UCS_ERR_NO_ELEM;
    // Newer versions refuse an unknown name and a bad value with the same status.
    const isRefused = status !== ucs_status_t.UCS_OK && !own.has(name) && !isAmong(everySetting(), name);
    if (status === ucs_status_t.UCS_ERR_NO_ELEM || isRefused) throw unknownSetting(name);
    checkStatus("ucp_config_modify", status, `Setting ${given} does not accept "${value}"`);
  }
}

/** Names in UCX_TLS that enable shared memory. */
const sharedMemory: ReadonlySet<string> = new Set(["all", "sm", "shm", "mm", "posix", "sysv", "xpmem"]);

// law ucx/defaults: ucx/config
/**
 * Causeway's defaults, unless the environment or the caller overrides them.
 *
 * KEEPALIVE_INTERVAL: over shared memory UCX detects a dead peer only by checking on it, which it does every 20 s by
 * default. Here it checks once a second, so that a killed peer is detected within two; `keepalive_timer.ts` keeps it
 * from waking workers for that where the system reports a peer's end.
 *
 * MM_ERROR_HANDLING: endpoints that detect a dead peer are denied shared memory by default, so that two processes on
 * one host would talk over TCP, 8 to 11 times slower (measured with UCX 1.13.1). Where shared memory is disabled UCX
 * would warn that the setting is unused.
 *
 * PROTO_ENABLE: 1.16 was the first version to use its new protocols by default. When a peer dies in the middle of
 * messages they end this process, too, in a build with assertions such as Ubuntu 24.04's (`memh == NULL`).
 */
function defaults(version: string, settings: Readonly<Record<string, string>>): Record<string, string> {
  const transports = chosen(settings, "TLS") ?? "all";
  const hasFirstProtocols = !isBefore(version, 16) && isBefore(version, 17);
  const isSharing = transports.startsWith("^") || transports.split(",").some((name) => sharedMemory.has(name));
  return {
    ...(chosen(settings, "KEEPALIVE_INTERVAL") === undefined ? { KEEPALIVE_INTERVAL: "1s" } : {}),
    ...(isSharing && chosen(settings, "MM_ERROR_HANDLING") === undefined ? { MM_ERROR_HANDLING: "y" } : {}),
    ...(hasFirstProtocols && chosen(settings, "PROTO_ENABLE") === undefined ? { PROTO_ENABLE: "n" } : {}),
  };
}

// law ucx/familyOfTcp: ucx/config
/** The address family of UCX's own TCP connections: `TCP_AF_PRIO`, which UCX supports since 1.14. */
export function familyOfTcp(version: string, settings: Readonly<Record<string, string>>): 4 | 6 {
  const first = chosen(settings, "TCP_AF_PRIO")?.split(",")[0]?.trim();
  return first === "inet6" && !isBefore(version, 14) ? 6 : 4;
}

/** The value that the caller or the environment gives a setting. */
function chosen(settings: Readonly<Record<string, string>>, name: string): string | undefined {
  return settings[name] ?? settings[`UCX_${name}`] ?? ffiPort().env(`UCX_${name}`);
}

/**
 * The names of UCX's own settings. ucp_config_modify() rejects none: it keeps an unknown one for a transport that may
 * want it, and a misspelled one causes only a warning when the first worker is created.
 */
function ownSettings(ucp: UcpFunctions, config: bigint): ReadonlySet<string> {
  const flags = UCS_CONFIG_PRINT.CONFIG | UCS_CONFIG_PRINT.HIDDEN;
  const text = printInfo((file) => ucp.information.ucp_config_print(config, file, null, flags));
  return new Set(namesIn(text));
}

// law ucx/checkTransportSettings: ucx/config
/**
 * Checks the names of settings that are not UCX's own, once a context has loaded the transports: a name with a loaded
 * transport's prefix must be one of its settings. Before 1.17 UCX ignores most of those given to ucp_config_modify()
 * (seen with 1.13.1 to 1.16.0): it takes them from the environment alone.
 *
 * @throws {UcxError} if one is not
 * @throws {TypeError} if one would be ignored
 */
export function checkTransportSettings(version: string, settings: Readonly<Record<string, string>>): void {
  const given = Object.entries(settings).map(([name, value]) => [name.replace(/^UCX_/, ""), value] as const);
  if (given.length === 0) return;
  const all = everySetting();
  for (const [name, value] of given) {
    const [family = ""] = name.split("_");
    if (all.some((known) => known.startsWith(`${family}_`)) && !isAmong(all, name)) throw unknownSetting(name);
    if (isBefore(version, 17) && ignored.has(family)) {
      throw new TypeError(
        `Cannot set ${name} by config with UCX ${version}: before 1.17, UCX takes it from the environment alone. Start ` +
          `the program with UCX_${name}=${value}`,
      );
    }
  }
}

/**
 * Whether a name is known. Transports share many, under several names: UCX_RC_SEG_SIZE applies to all that begin with
 * RC.
 */
function isAmong(all: readonly string[], name: string): boolean {
  const end = name.replace(/^[^_]*/, "");
  return all.some((known) => known === name || (end !== "" && known.endsWith(end)));
}

function unknownSetting(name: string): UcxError {
  return new UcxError("ucp_config_modify", ucs_status_t.UCS_ERR_NO_ELEM, `This UCX has no setting UCX_${name}`);
}

/**
 * The names of all settings of the UCX components that this process has loaded; none if this UCX does not list them,
 * which is not part of its public interface. Some versions of the function take a filter.
 */
function everySetting(): string[] {
  const { dlopen, dlsym } = libc().loading;
  const ucs = dlopen(cString("libucs.so.0"), RTLD.LAZY | RTLD.NOLOAD);
  if (ucs === 0n) return [];
  const [print, list] = ["ucs_config_parser_print_all_opts", "ucs_config_global_list"].map((name) =>
    dlsym(ucs, cString(name))
  );
  if (!print || !list) return [];
  const signature = { args: ["ptr", "buffer", "u32", "ptr", "ptr"], returns: "void" } as const;
  const printAll = ffiPort().functionAt(print, signature);
  const flags = UCS_CONFIG_PRINT.CONFIG | UCS_CONFIG_PRINT.HIDDEN;
  return namesIn(printInfo((file) => printAll(file, cString("UCX_"), flags, list, 0n)));
}

/** The names in a list of settings. */
function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/^UCX_(\w+)=/gm), ([, name]) => name ?? "");
}

/** Prefixes of settings that UCX ignores before 1.17, as far as they can be tried without the hardware. */
const ignored: ReadonlySet<string> = new Set(["CMA", "POSIX", "SELF", "SYSV", "TCP"]);

/** Prefixes of all other settings: a transport, a component, or a prefix that several of them share. */
const families: ReadonlySet<string> = new Set([
  "CMA",
  "CUDA",
  "DC",
  "GDR",
  "GGA",
  "IB",
  "KNEM",
  "MM",
  "POSIX",
  "RC",
  "RDMA",
  "ROCM",
  "SCOPY",
  "SELF",
  "SM",
  "SRD",
  "SYSV",
  "TCP",
  "UD",
  "UGNI",
  "XPMEM",
  "ZE",
]);
