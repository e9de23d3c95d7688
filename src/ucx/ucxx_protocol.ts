/**
 * UCXX's protocol over UCX: endpoints greet each other over the stream, hash the tags of messages, and put their own
 * header before that of an active message. Facts about UCXX 0.52, learnt by talking to it.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { littleEndian, nodeBuiltin } from "../ffi/mod.ts";
import type { ActiveMessageFormat } from "./active_messages/active_messages.ts";
import type { Extra, Protocol } from "./protocol.ts";
import { checkMatch, checkTag, everyBit, type ReceiveTag, type SendTag, type TagRule } from "./tag.ts";

/** The first 64 bits of the SHA-1 of a tuple as Python prints it. */
function hash64(tuple: string): bigint {
  const { createHash } = nodeBuiltin("node:crypto");
  return BigInt(`0x${createHash("sha1").update(tuple).digest("hex").slice(0, 16)}`);
}

/** Python hashes integers modulo this prime. */
const hashModulus = 2n ** 61n - 1n;

// law ucx/ucxxTag: ucx/ucxx_protocol
/**
 * The tag on the wire for a program's tag.
 *
 * @param messageTag the number in the receiving side's greeting
 */
export function ucxxTag(messageTag: bigint, tag: bigint): bigint {
  return hash64(`(${messageTag}, ${tag % hashModulus})`);
}

/** Size of a greeting in bytes. */
const greetingBytes = 16;

/** Encodes a greeting: the number of our side's messages, and a hash of it. */
export function writeGreeting(messageTag: bigint): Uint8Array<ArrayBuffer> {
  const greeting = new Uint8Array(new ArrayBuffer(greetingBytes));
  const view = new DataView(greeting.buffer);
  view.setBigUint64(0, messageTag, littleEndian);
  view.setBigUint64(8, hash64(`(${messageTag},)`), littleEndian);
  return greeting;
}

// law ucx/readGreeting: ucx/ucxx_protocol
/**
 * Reads a greeting.
 *
 * @returns the number of the other side's messages
 * @throws {TypeError} if it is not a greeting
 */
export function readGreeting(greeting: Uint8Array<ArrayBuffer>): bigint {
  const view = new DataView(greeting.buffer, greeting.byteOffset, greeting.length);
  const messageTag = view.getBigUint64(0, littleEndian);
  if (view.getBigUint64(8, littleEndian) !== hash64(`(${messageTag},)`)) {
    throw new TypeError(
      "Cannot connect: expected UCXX's greeting of a number and its hash, got other bytes. " +
        "Does the other side speak UCXX's protocol?",
    );
  }
  return messageTag;
}

/** How many hashes of tags one direction of an endpoint remembers. */
const maxKnown = 4096;

// law ucx/HashedTags: ucx/ucxx_protocol
/** The tags of one direction of an endpoint. */
export class HashedTags {
  readonly #messageTag: bigint;
  readonly #known = new Map<bigint, bigint>();

  /** `messageTag`: the number in the receiving side's greeting. */
  constructor(messageTag: bigint) {
    this.#messageTag = messageTag;
  }

  /** How many hashes are remembered. */
  get known(): number {
    return this.#known.size;
  }

  /** @returns the tag on the wire */
  of({ tag, exact = false }: SendTag): bigint {
    if (exact) return exactTag(tag);
    if (tag === undefined) return this.#messageTag;
    let hashed = this.#known.get(tag);
    if (hashed === undefined) {
      hashed = ucxxTag(this.#messageTag, checkTag("tag", tag));
      if (this.#known.size >= maxKnown) this.#known.clear(); // by a program that counts its messages in the tag
      this.#known.set(tag, hashed);
    }
    return hashed;
  }
}

function exactTag(tag: bigint | undefined): bigint {
  if (tag === undefined) throw new TypeError("Cannot use an exact tag: expected { tag } with { exact }, got none");
  return checkTag("tag", tag);
}

// law ucx/UcxxTags: ucx/ucxx_protocol
/** The tags of an endpoint that has greeted: messages have the number in their receiver's greeting, hashed. */
export class UcxxTags implements TagRule {
  readonly #send: HashedTags;
  readonly #receive: HashedTags;

  /** The number in our side's greeting, and in the other side's. */
  constructor(ours: bigint, theirs: bigint) {
    this.#send = new HashedTags(theirs);
    this.#receive = new HashedTags(ours);
  }

  toSend(given: SendTag): bigint {
    return this.#send.of(given);
  }

  toReceive(given: ReceiveTag): bigint {
    const { mask = everyBit, exact = false } = given;
    if (mask !== everyBit && !exact) {
      throw new TypeError("Cannot use a mask: expected { exact: true } with it, because UCXX's tags are hashed");
    }
    const tag = this.#receive.of(given);
    checkMatch(tag, mask);
    return tag;
  }
}

// law ucx/addressTags: ucx/ucxx_protocol
/** The tags of an endpoint connected by a worker's address: UCXX does not greet there. */
const addressTags: TagRule = {
  toSend({ tag, exact = false }) {
    if (!exact) throw notGreeted();
    return exactTag(tag);
  },
  toReceive({ tag, mask = everyBit, exact = false }) {
    if (!exact) throw notGreeted();
    checkMatch(exactTag(tag), mask);
    return exactTag(tag);
  },
};

function notGreeted(): TypeError {
  return new TypeError(
    "Cannot hash a tag: UCXX sends no greeting by worker address. Give { tag, exact: true } (its force_tag).",
  );
}

/** The tags of a worker that receives from any peer: unchanged, as in UCXX. */
const workerTags: TagRule = {
  toSend: ({ tag }) => exactTag(tag),
  toReceive({ tag = 0n, mask = everyBit, exact = true }) {
    if (!exact) throw new TypeError("Cannot hash a tag for a worker: its endpoints have tags of their own");
    checkMatch(tag, mask);
    return tag;
  },
};

/** Offsets in the header that precedes the program's own. */
const at = { memoryType: 0, hasCallback: 4, policy: 5, length: 6, end: 14 } as const;
/** Size of what identifies a callback of the receiver: its owner, and a number. It precedes the policy. */
const callbackBytes = 64 + 8;

/** UCXX's active messages. */
export const ucxxMessages: ActiveMessageFormat = {
  id: 0,
  added: at.end,

  /** Without a callback; a receiver that has no such memory receives to the host. */
  write(header, isCuda) {
    const bytes = new Uint8Array(new ArrayBuffer(at.end + header.length));
    const view = new DataView(bytes.buffer);
    view.setInt32(at.memoryType, isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST, littleEndian);
    view.setBigUint64(at.length, BigInt(header.length), littleEndian);
    bytes.set(header, at.end);
    return bytes;
  },

  // law ucx/ucxxMessages.read: ucx/ucxx_protocol
  read(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const skipped = bytes.length > at.hasCallback && view.getUint8(at.hasCallback) !== 0 ? callbackBytes : 0;
    const start = at.end + skipped;
    if (bytes.length < start) return null;
    const length = view.getBigUint64(at.length + skipped, littleEndian);
    return length === BigInt(bytes.length - start) ? bytes.slice(start) : null;
  },
};

/** What UCXX understands instead. */
const instead: Readonly<Record<Extra, string>> = {
  sendArray: "send or sendMany by tag, or sendMessage",
  recvArray: "recv or recvMany by tag, or messages()",
  readable: "rawStream.recvAll",
  writable: "rawStream.send",
};

/** UCXX's protocol. */
export const ucxxProtocol: Protocol = {
  workerTags,
  endpointTags: addressTags,
  messages: ucxxMessages,

  // law ucx/ucxxProtocol.greet: ucx/ucxx_protocol
  async greet(stream, side, limits) {
    const ours = new DataView(crypto.getRandomValues(new Uint8Array(8)).buffer).getBigUint64(0);
    const greeting = new Uint8Array(new ArrayBuffer(greetingBytes));
    if (side === "listener") await stream.send(writeGreeting(ours), limits);
    await stream.recvAll(greeting, limits);
    const theirs = readGreeting(greeting);
    if (side === "client") await stream.send(writeGreeting(ours), limits);
    return new UcxxTags(ours, theirs);
  },

  // law ucx/ucxxProtocol.checkExtra: ucx/ucxx_protocol
  checkExtra(name) {
    throw new TypeError(
      `Cannot use ${name} with the protocol "ucxx": UCXX has no such messages, and would drop them. ` +
        `Use ${instead[name]}.`,
    );
  },
};
