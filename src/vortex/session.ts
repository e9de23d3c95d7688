/**
 * Sessions: which encodings and extension types are known.
 *
 * @module
 */
import type { ArrowType } from "../cdata/mod.ts";
import { checkBoolean, checkOptions, type OptionNames, showAs, showGiven } from "../layout/mod.ts";
import { defaultEncodings } from "./default_encodings.ts";
import type { DTypeOf } from "./dtype.ts";
import type { VortexEncoding } from "./encoding.ts";
import { defaultExtensions } from "./extensions.ts";

/** An extension type, and what Arrow calls it. */
export interface VortexExtension {
  /** The extension's name: `vortex.timestamp`. */
  readonly id: string;
  /**
   * The Arrow type of the field, whose values are stored the same way as the extension's storage.
   *
   * @returns null if Arrow sees the values as their storage
   * @throws {TypeError} if the metadata is not valid for this extension
   */
  toArrow(dtype: DTypeOf<"extension">): ArrowType | null;
  /** Key-value pairs for the field's metadata, such as `ARROW:extension:name`. Default: none. */
  readonly fieldMetadata?: Readonly<Record<string, string>>;
}

/** Options of a {@linkcode VortexSession}. */
export interface VortexSessionOptions {
  /**
   * Whether arrays with unknown encodings can be opened, to be described and passed on. Decoding them is still an
   * error. Default false.
   */
  readonly allowsUnknown?: boolean;
}

const sessionOptionNames: OptionNames<VortexSessionOptions> = { allowsUnknown: true };

/**
 * The encodings and extension types that are known. An array can be rebuilt only if all its encodings are known: an
 * encoding that a program registered with Vortex in Python, for example, must be registered here as well.
 *
 * @example
 * ```ts
 * import { VortexSession } from "@causeway/causeway/vortex";
 *
 * const session = VortexSession.default();
 * console.log(session.encodings.includes("vortex.primitive"), session.allowsUnknown); // true false
 * ```
 */
export class VortexSession {
  /** Whether arrays with unknown encodings can be opened. */
  readonly allowsUnknown: boolean;
  readonly #encodings = new Map<string, VortexEncoding>();
  readonly #extensions = new Map<string, VortexExtension>();

  /** A session that knows nothing. See {@linkcode VortexSession.default}. */
  constructor(options: VortexSessionOptions = {}) {
    checkOptions(options, sessionOptionNames);
    const { allowsUnknown = false } = options;
    checkBoolean("allowsUnknown", allowsUnknown);
    this.allowsUnknown = allowsUnknown;
  }

  /** A new session with all encodings and extension types of this package. Registrations affect only that session. */
  static default(options: VortexSessionOptions = {}): VortexSession {
    const session = new VortexSession(options);
    for (const encoding of defaultEncodings) session.register(encoding);
    for (const extension of defaultExtensions) session.registerExtension(extension);
    return session;
  }

  /** The ids of the known encodings. */
  get encodings(): readonly string[] {
    return [...this.#encodings.keys()];
  }

  /** Adds an encoding, replacing one with the same id. */
  register(encoding: VortexEncoding): this {
    checkId(encoding, "an encoding");
    this.#encodings.set(encoding.id, encoding);
    return this;
  }

  /** Adds an extension type, replacing one with the same id. */
  registerExtension(extension: VortexExtension): this {
    checkId(extension, "an extension type");
    this.#extensions.set(extension.id, extension);
    return this;
  }

  /** An extension type by its id; null if it is unknown: Arrow then sees values as their storage. */
  extension(id: string): VortexExtension | null {
    return this.#extensions.get(id) ?? null;
  }

  /** Whether an encoding is known. */
  knows(id: string): boolean {
    return this.#encodings.has(id);
  }

  /** An encoding by its id; null if it is unknown. */
  encoding(id: string): VortexEncoding | null {
    return this.#encodings.get(id) ?? null;
  }

  static {
    showAs(VortexSession, (session) => {
      const counts = `with ${session.#encodings.size} encodings and ${session.#extensions.size} types of extensions`;
      return session.allowsUnknown ? `${counts}, also unknown encodings` : counts;
    });
  }
}

function checkId(given: { readonly id: string }, what: string): void {
  if (typeof given?.id === "string") return;
  throw new TypeError(`Cannot register ${showGiven(given)}: expected ${what}, with an id`);
}
