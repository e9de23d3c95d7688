/**
 * The root of UCX: a library, its configuration and a context.
 *
 * @module
 */
import { UCP_API } from "../../bindings/ucp.ts";
import {
  UCP_CONTEXT_ATTR_FIELD,
  ucp_context_attr_t,
  UCP_FEATURE,
  UCP_PARAMS_FIELD,
  ucp_params_t,
  UCS_MEMORY_TYPE,
} from "../../bindings/ucp_types.ts";
import { NativeArena, readCString, type StructView } from "../ffi/mod.ts";
import { checkMade, checkOptions, type OptionNames, show, showAs } from "../layout/mod.ts";
import { checkDescriptorsLeft, keepFromChildren, rememberInherited } from "../unix/mod.ts";
import { ContextResources } from "./context_resources.ts";
import { checkStatus } from "./error.ts";
import { closeIfDropped, placeOfCall } from "./finalizer.ts";
import { lookForSockets } from "./event_loop.ts";
import { openUcp, type UcpFunctions } from "./library.ts";
import { PoolStaging } from "./pool_staging.ts";
import { printInfo } from "./print_info.ts";
import { writeFields } from "./struct_fields.ts";
import { applyConfig, checkTransportSettings, familyOfTcp } from "./config.ts";
import { UcxWorker, type WorkerOptions } from "./worker.ts";

/** Options of {@linkcode Ucx.open}. */
export interface UcxOptions {
  /**
   * Settings of UCX by name, with or without the prefix `UCX_`: `{ TLS: "tcp" }`. They override the environment
   * variables of the same name, which UCX reads itself. Before 1.17, UCX takes a transport's own settings, such as
   * `TCP_PORT_RANGE`, from the environment alone: here they are an error.
   */
  readonly config?: Readonly<Record<string, string>>;
  /**
   * Whether workers register memory for peers, and use that of peers (`register`, `remote`). Without it UCX does not
   * accept messages by which peers would access memory. Default true.
   */
  readonly remoteMemory?: boolean;
  /**
   * How many bytes of each GPU's memory may be kept for large messages from and to pool memory, which other processes
   * cannot map: they are copied on the GPU to or from memory that can be mapped, which UCX uses instead. Kept until
   * this is closed. Default: a sixteenth of the GPU's memory. 0: none.
   */
  readonly stagingBytes?: number;
  /** The libucp file to open. Default: what `CAUSEWAY_LIBUCP` names, else a wheel's, else the system's. */
  readonly library?: string;
}

const ucxOptionNames: OptionNames<UcxOptions> = {
  config: true,
  library: true,
  remoteMemory: true,
  stagingBytes: true,
};

/**
 * An open UCX: the library and one context.
 *
 * @example
 * ```ts ignore
 * using ucx = Ucx.open();
 * console.log(ucx.version, ucx.hasCuda);
 * ```
 */
export class Ucx {
  /** Version of the library, for example `1.13.1`. */
  readonly version: string;
  /** Path of the library. */
  readonly path: string;
  /**
   * Whether GPU memory can be sent and received, here and now: UCX was built with CUDA (Debian's and Ubuntu's are not),
   * there is a GPU, and its transports are enabled (`UCX_TLS`).
   */
  readonly hasCuda: boolean;
  readonly #ucp: UcpFunctions;
  readonly #hasRemoteMemory: boolean;
  readonly #requestBytes: number;
  readonly #family: 4 | 6;
  readonly #resources: ContextResources;
  readonly #cuda: PoolStaging | null;

  private constructor(
    path: string,
    ucp: UcpFunctions,
    config: Readonly<Record<string, string>>,
    hasRemoteMemory: boolean,
    stagingBytes: number | undefined,
  ) {
    checkMade(config, "Ucx", "Ucx.open()");
    using arena = new NativeArena();
    this.#ucp = ucp;
    this.#hasRemoteMemory = hasRemoteMemory;
    this.path = path;
    this.version = readCString(ucp.opening.ucp_get_version_string());
    this.#family = familyOfTcp(this.version, config);
    const wanted = hasRemoteMemory ? features | remoteFeatures : features;
    const context = createContext(ucp, this.version, arena, config, wanted);
    this.#resources = new ContextResources(ucp, context, placeOfCall());
    try {
      const { memory_types, request_size } = attributesOf(ucp, arena, context);
      const knowsCuda = (memory_types & (1n << BigInt(UCS_MEMORY_TYPE.CUDA))) !== 0n;
      this.hasCuda = knowsCuda && this.transports().some((name) => name.startsWith("cuda"));
      this.#cuda = this.hasCuda
        ? this.#resources.adopt(new PoolStaging(stagingBytes, (device) => !device.isSimulated))
        : null;
      this.#requestBytes = request_size;
    } catch (error) {
      this.#resources.close();
      throw error;
    }
    closeIfDropped(this, this.#resources);
  }

  /**
   * Opens libucp and creates a context for messages, streams and, unless disabled, remote memory.
   *
   * @throws {LibraryNotFoundError} if there is no libucp; the message says what to install
   * @throws {FfiError} if the process has opened another libucp before
   * @throws {SystemError} EMFILE if there are too few descriptors left for UCX
   * @throws {UcxError} if this UCX does not know a setting or its value, or finds no transport
   * @throws {RangeError} if `stagingBytes` is not a number of bytes
   * @throws {TypeError} if an option has the wrong type, a setting is no text, or this UCX takes it from the
   *   environment alone: a transport's own, before 1.17
   */
  static open(options: UcxOptions = {}): Ucx {
    checkOptions(options, ucxOptionNames);
    const { config = {}, remoteMemory = true, stagingBytes } = options;
    if (stagingBytes !== undefined && !(Number.isSafeInteger(stagingBytes) && stagingBytes >= 0)) {
      throw new RangeError(`Expected stagingBytes to be a number of bytes, 0 or more, got ${show(stagingBytes)}`);
    }
    if (typeof remoteMemory !== "boolean") {
      throw new TypeError(`Expected remoteMemory to be true or false, got ${show(remoteMemory)}`);
    }
    if (options.library !== undefined && typeof options.library !== "string") {
      throw new TypeError(`Expected library to be the path of libucp, got ${show(options.library)}`);
    }
    checkConfig(config);
    lookForSockets(); // first: UCX creates descriptors of the kind that this looks for
    rememberInherited(); // and those that children inherit
    checkDescriptorsLeft(descriptorsToOpen, "open UCX");
    const { path, functions } = openUcp(options.library);
    const ucx = new Ucx(path, functions, config, remoteMemory, stagingBytes);
    keepFromChildren();
    return ucx;
  }

  /**
   * Creates a worker: an endpoint factory that makes its own progress.
   *
   * @throws {TypeError} if this context is closed, or for an unknown option
   * @throws {RangeError} if there is no such progress mode
   * @throws {SystemError} EMFILE if there are too few descriptors left for UCX
   */
  createWorker(options: WorkerOptions = {}): UcxWorker {
    if (this.#resources.closed) throw new TypeError("Cannot create a worker: this Ucx is closed");
    return new UcxWorker({
      ucp: this.#ucp,
      version: this.version,
      context: this.#resources.handle,
      cuda: this.#cuda,
      hasRemoteMemory: this.#hasRemoteMemory,
      requestBytes: this.#requestBytes,
      family: this.#family,
      owner: this.#resources,
      root: this,
    }, options);
  }

  /** The transports and devices that this context can use, for example `["self/memory0", "tcp/lo", "sysv/memory"]`. */
  transports(): string[] {
    if (this.#resources.closed) throw new TypeError("Cannot list transports: this Ucx is closed");
    const { handle } = this.#resources;
    const text = printInfo((file) => this.#ucp.information.ucp_context_print_info(handle, file));
    return Array.from(text.matchAll(/resource\s+\d+\s*:.*\s(\S+\/\S+)/g), ([, name]) => name ?? "");
  }

  /** Whether it is closed. */
  get isClosed(): boolean {
    return this.#resources.closed;
  }

  /** Closes the workers that are still open, without waiting for their peers, then frees the context. */
  close(): void {
    this.#resources.close();
  }

  /** Frees the context. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(
      Ucx,
      (ucx) =>
        `${ucx.version} (${ucx.path})${ucx.hasCuda ? " with CUDA" : ""}${ucx.#resources.closed ? ", closed" : ""}`,
    );
  }
}

/** How many descriptors UCX may need for a context. Without those of its thread, UCX 1.13 ends the process. */
const descriptorsToOpen = 8;

function checkConfig(config: unknown): void {
  if (typeof config !== "object" || config === null) {
    throw new TypeError(`Expected config to be an object of settings, { TLS: "tcp" }, got ${show(config)}`);
  }
  for (const [name, value] of Object.entries(config)) {
    if (typeof value !== "string") throw new TypeError(`Expected config.${name} to be a text, got ${show(value)}`);
  }
}

const features = UCP_FEATURE.TAG | UCP_FEATURE.WAKEUP | UCP_FEATURE.AM | UCP_FEATURE.STREAM;
const remoteFeatures = UCP_FEATURE.RMA | UCP_FEATURE.AMO32 | UCP_FEATURE.AMO64;

function createContext(
  ucp: UcpFunctions,
  version: string,
  arena: NativeArena,
  settings: Readonly<Record<string, string>>,
  features: bigint,
): bigint {
  const { opening } = ucp;
  const config = arena.out("ptr");
  checkStatus("ucp_config_read", opening.ucp_config_read(0n, 0n, config.$address));
  try {
    applyConfig(ucp, version, config.value, settings);
    const params = arena.struct(ucp_params_t);
    writeFields(params, UCP_PARAMS_FIELD, { features });
    const context = arena.out("ptr");
    const { major, minor } = UCP_API;
    const status = opening.ucp_init_version(major, minor, params.$address, config.value, context.$address);
    checkStatus("ucp_init_version", status, "Check UCX_TLS and UCX_NET_DEVICES: no usable transport is a usual cause");
    try {
      checkTransportSettings(version, settings);
    } catch (error) {
      opening.ucp_cleanup(context.value);
      throw error;
    }
    return context.value;
  } finally {
    opening.ucp_config_release(config.value);
  }
}

/** Queries a context: the memory types that it can move, as a bit set, and the size of its requests. */
function attributesOf(ucp: UcpFunctions, arena: NativeArena, context: bigint): StructView<typeof ucp_context_attr_t> {
  const attributes = arena.struct(ucp_context_attr_t);
  attributes.field_mask = UCP_CONTEXT_ATTR_FIELD.memory_types | UCP_CONTEXT_ATTR_FIELD.request_size;
  checkStatus("ucp_context_query", ucp.information.ucp_context_query(context, attributes.$address));
  return attributes;
}
