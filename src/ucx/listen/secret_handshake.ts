/**
 * Both sides prove that they share a secret, before either knows how to reach the other's worker.
 *
 * They talk over a separate connection, TCP without UCX: any program that connects to a UCX worker can send it messages
 * at once, and UCX does not say whose they are. The listener sends a nonce. The client answers with its own nonce, its
 * worker's address, and a proof: an HMAC with the secret over all of that. Then the listener sends its worker's address
 * with a proof over everything. A listener that accepts no more says so instead; anyone in between could forge that,
 * too, but it is only the reason for a failure. So a proof is valid for one connection and one side only: replayed or
 * reflected, it proves nothing. Nothing is encrypted: an eavesdropper can find out a secret that can be guessed.
 *
 * @module
 */
import { ucs_status_t } from "../../../bindings/ucp_types.ts";
import { littleEndian, nodeBuiltin } from "../../ffi/mod.ts";
import { UcxError } from "../error.ts";
import type { TcpConnection } from "./tcp_connection.ts";

const greeting = new TextEncoder().encode("causeway 1\n");
const nonceBytes = 32;
const proofBytes = 32;
/** The maximum size of a worker's address, in bytes. */
const longestAddress = 65_536;

/** A shared secret: a text, or bytes. */
export type Secret = string | Uint8Array;

// law ucx/takeSecret: ucx/secret
/**
 * The secret of an object that may have one, as it is now: clearing its bytes later changes nothing.
 *
 * @returns null if the object has none
 * @throws {TypeError} unless it is a non-empty text or bytes. A property that is present but `undefined` may be an
 *   unset environment variable, which must not let peers in without a secret
 */
export function takeSecret(given: { readonly secret?: Secret }): Secret | null {
  if (!("secret" in given)) return null;
  const { secret } = given;
  if (typeof secret === "string" && secret.length > 0) return secret;
  if (secret instanceof Uint8Array && secret.length > 0) return new Uint8Array(secret); // slice() of a Buffer is no copy
  const got = typeof secret === "object" ? Object.prototype.toString.call(secret) : typeof secret;
  throw new TypeError(
    "Cannot use the secret: expected a non-empty string or Uint8Array, got " +
      (typeof secret === "string" || secret instanceof Uint8Array ? "an empty one" : got) +
      ". Is an environment variable not set? Leave it out where there is none.",
  );
}

/** The other side does not know the secret, or violates the handshake. */
export class SecretError extends Error {
  /** `SecretError`. */
  override readonly name: string = "SecretError";
}

// law ucx/proofOf: ucx/secret
function proofOf(secret: Secret, side: "listener" | "client", said: readonly Uint8Array[]): Uint8Array {
  const hmac = nodeBuiltin("node:crypto").createHmac("sha256", secret).update(`${side}\n`);
  for (const part of said) hmac.update(withLength(part));
  return hmac.digest();
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && nodeBuiltin("node:crypto").timingSafeEqual(one, other);
}

function nonce(): Uint8Array {
  return nodeBuiltin("node:crypto").randomBytes(nonceBytes);
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return nodeBuiltin("node:buffer").Buffer.concat(parts);
}

/** Bytes after their number. */
function withLength(bytes: Uint8Array): Uint8Array {
  const framed = new Uint8Array(4 + bytes.length);
  new DataView(framed.buffer).setUint32(0, bytes.length, littleEndian);
  framed.set(bytes, 4);
  return framed;
}

/** A length that no address has: the listener accepts no more. */
const fullMark = 0xffff_ffff;

/** @throws {SecretError} if the connection ends first */
async function take(connection: HandshakeConnection, count: number, missing: string): Promise<Uint8Array> {
  const bytes = await connection.receive(count);
  if (bytes === null) throw new SecretError(`Cannot agree on a secret: ${missing}`);
  return bytes;
}

/** Bytes after their number. @throws {SecretError} if there are none, or more than an address can have */
async function takeFramed(connection: HandshakeConnection, missing: string): Promise<Uint8Array> {
  const head = await take(connection, 4, missing);
  const length = new DataView(head.buffer, head.byteOffset, 4).getUint32(0, littleEndian);
  if (length === fullMark) {
    throw new UcxError(
      "ucp_ep_create",
      ucs_status_t.UCS_ERR_REJECTED,
      "The listener accepts no more connections or handshakes now (its backlog and limits). Try again later",
    );
  }
  if (length === 0 || length > longestAddress) {
    throw new SecretError(`Cannot agree on a secret: ${length} bytes are not an address`);
  }
  return await take(connection, length, missing);
}

/** What a handshake needs from a connection. */
export type HandshakeConnection = Pick<TcpConnection, "receive" | "send">;

// law ucx/acceptHandshake: ucx/secret
/**
 * The listener's side of the handshake.
 *
 * @param own its worker's address
 * @param meet called with the client's address, before the client learns this one. It returns whether there is room
 * @throws {SecretError} unless the other side knows the secret
 */
export async function acceptHandshake(
  connection: HandshakeConnection,
  secret: Secret,
  own: Uint8Array,
  meet: (address: Uint8Array) => boolean,
): Promise<void> {
  const missing = "the client has hung up";
  const challenge = nonce();
  await connection.send(joined(greeting, challenge));
  const answer = await take(connection, nonceBytes, missing);
  const address = await takeFramed(connection, missing);
  const proof = await take(connection, proofBytes, missing);
  const said = [challenge, answer, address];
  if (!isSame(proof, proofOf(secret, "client", said))) throw new SecretError("The other side does not know the secret");
  if (meet(address)) await connection.send(joined(withLength(own), proofOf(secret, "listener", [...said, own])));
  else sayFull(connection);
}

/** Tells a client that the listener accepts no more, at once if the system can send a few bytes. */
export function sayFull(connection: HandshakeConnection): void {
  void connection.send(new Uint8Array(4).fill(0xff)); // which is that mark
}

// law ucx/connectHandshake: ucx/secret
/**
 * The client's side of the handshake.
 *
 * @param own its worker's address
 * @returns the address of the listener's worker
 * @throws {SecretError} unless the other side knows the secret
 * @throws {UcxError} UCS_ERR_REJECTED if it accepts no more
 */
export async function connectHandshake(
  connection: HandshakeConnection,
  secret: Secret,
  own: Uint8Array,
): Promise<Uint8Array> {
  if (!isSame(await take(connection, greeting.length, "the other side has hung up at once"), greeting)) {
    throw new SecretError("Cannot agree on a secret: the other side is not a Causeway listener with a secret");
  }
  const missing = "the listener has hung up. Is the secret the same?";
  const challenge = await take(connection, nonceBytes, missing);
  const answer = nonce();
  const said = [challenge, answer, own];
  await connection.send(joined(answer, withLength(own), proofOf(secret, "client", said)));
  const address = await takeFramed(connection, missing);
  const proof = await take(connection, proofBytes, missing);
  if (!isSame(proof, proofOf(secret, "listener", [...said, address]))) {
    throw new SecretError("The listener does not know the secret");
  }
  return address;
}
