/**
 * Explains in words why a connection to a listener failed.
 *
 * @module
 */
import { ucs_status_t } from "../../../bindings/ucp_types.ts";
import { SystemError } from "../../ffi/mod.ts";
import { advice, UcxError } from "../error.ts";
import { formatHostAndPort, type HostAndPort } from "./socket_address.ts";
import { isBefore } from "../version.ts";

/** A connection attempt. */
export interface ConnectAttempt {
  readonly to: HostAndPort;
  /** Whether the listener must prove a secret, and whether it has by now. */
  secret: "none" | "unproved" | "proved";
  /** The listener's UCX version; null if unknown: UCX does not report it, worker addresses do. */
  listenersVersion: string | null;
  /** This side's UCX version. */
  readonly version: string;
  /** Whether both sides greet. */
  readonly greets: boolean;
  /** Whether the connection is established, and both sides have yet to greet. */
  isGreeting: boolean;
  /** This side's option: UCX does not connect two sides that differ in it, and reports anything but that. */
  readonly errors: "peer" | "none";
}

// law ucx/explainFailure: ucx/ucxx_protocol, ucx/listener, ucx/secret, ucx/connect_failure
/** The failure of a connection to a listener, with its usual causes: UCX's statuses do not tell them apart. */
export function explainFailure(
  error: unknown,
  { to, version, greets, isGreeting, errors, secret, listenersVersion }: ConnectAttempt,
): unknown {
  const at = formatHostAndPort(to);
  if (error instanceof SystemError && error.code === "ECONNREFUSED") {
    return new UcxError("ucp_ep_create", ucs_status_t.UCS_ERR_NOT_CONNECTED, `Nobody listens at ${at}`);
  }
  if (!(error instanceof UcxError)) return error;
  const said = (hint: string) => new UcxError(error.call, error.status, hint);
  const way = versions(version, listenersVersion);
  const sameErrors = `Does it have { errors: "${errors}" }, as this side?`;
  switch (error.status) {
    case ucs_status_t.UCS_ERR_NOT_CONNECTED:
      return said(
        `Nobody listens at ${at}, or the listener asks for a secret, does not have { errors: "${errors}" } as this ` +
          "side, or does not speak UCX",
      );
    case ucs_status_t.UCS_ERR_CONNECTION_RESET:
    case ucs_status_t.UCS_ERR_ENDPOINT_TIMEOUT:
      if (isGreeting) {
        return said(
          `The listener at ${at} has accepted the connection, and closed it before both sides had greeted: it is ` +
            "closing, has as many connections as it accepts, or does not speak UCXX's protocol",
        );
      }
      return said(
        `The listener at ${at} has hung up, or there is none. Does it ask for a secret? ${sameErrors} ` +
          `Does it speak UCX? ${way}`,
      );
    case ucs_status_t.UCS_ERR_INVALID_PARAM: // what UCX sometimes reports about another version's answer
      return said(`UCX cannot use the answer from ${at}. ${way}`);
    case ucs_status_t.UCS_ERR_UNREACHABLE:
      return said(`${advice(error.status)}. ${way}`);
    case ucs_status_t.UCS_ERR_REJECTED:
      if (secret !== "none") return error; // it says why
      return said(
        `The listener at ${at} has refused the connection: it has as many as it accepts (its limits and backlog), or ` +
          `another version. ${way}`,
      );
    case ucs_status_t.UCS_ERR_TIMED_OUT:
      if (secret === "proved") {
        const oneSided = "Has one of the two workers connected to the other's address, and the other not back?";
        return said(
          `The listener at ${at} knows the secret, but UCX cannot reach it. ${sameErrors} ${oneSided} ${way}`,
        );
      }
      if (secret !== "none") return said(`Nobody at ${at} has asked for a secret. Does the listener have one?`);
      if (!greets) {
        return said(`${at} has not answered within the timeout. Does it speak UCX? ${sameErrors} ${way}`);
      }
      return said(`The listener has not greeted. Does it speak UCXX's protocol? ${sameErrors} ${way}`);
    default:
      return error;
  }
}

/** What is known about both sides' UCX versions. */
function versions(here: string, there: string | null): string {
  const other = there === null ? "the other side's version is not known here" : `the other side ${there}`;
  return `This side has UCX ${here}, ${other}: versions that are far apart do not connect. ` +
    "CAUSEWAY_LIBUCP names the libucp to use";
}

// law ucx/checkVersions: ucx/connect_failure
/**
 * Checks that two versions can connect to each other's workers. Versions before 1.14 abort their process with a failed
 * assertion ("invalid wireup message") over what versions from 1.21 on send over TCP, and messages over TCP between
 * versions before 1.19 and from 1.22 on fail or never arrive.
 *
 * @throws {UcxError} UCS_ERR_UNSUPPORTED
 */
export function checkVersions(here: string, there: string): void {
  const failing = [[14, 21], [19, 22]] as const; // those before the first with those from the second on
  const fail = (one: string, other: string) =>
    failing.some(([old, recent]) => isBefore(one, old) && !isBefore(other, recent));
  if (!fail(here, there) && !fail(there, here)) return;
  throw new UcxError("ucp_ep_create", ucs_status_t.UCS_ERR_UNSUPPORTED, versions(here, there));
}
