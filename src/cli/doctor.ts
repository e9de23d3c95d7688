/**
 * What is installed on this machine, what is missing, what that costs, and the command that gets it.
 *
 * @module
 */
import { Cuda } from "../cuda/mod.ts";
import { decodeVersion, libcuda, libcudart, libnvrtc } from "../driver/mod.ts";
import type { SymbolTable } from "../../bindings/abi.ts";
import { findInterpreters, type InstalledPackages, listPackages, pythonLibrary } from "../python/mod.ts";
import {
  FfiError,
  ffiPort,
  type LibraryDescription,
  LibraryNotFoundError,
  NativeArena,
  openLibrary,
  readCString,
} from "../ffi/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { libucp, Ucx } from "../ucx/mod.ts";
import { showBytes } from "../layout/mod.ts";

/** A library: where it is and what version, or why it is missing and what to do. */
export interface LibraryReport {
  readonly name: string;
  readonly path: string | null;
  readonly version: string | null;
  /** More about it, in words. */
  readonly note?: string;
  /** Why it cannot be used; null if it can. */
  readonly problem: string | null;
  /** Where it was searched for without success. */
  readonly searched: readonly string[];
  /** What does not work without it. */
  readonly cost: string;
  /** The command that gets it. */
  readonly fix: string;
}

/** A GPU. */
export interface GpuReport {
  readonly ordinal: number;
  readonly name: string;
  readonly uuid: string;
  readonly pciBusId: string;
  readonly computeCapability: string;
  readonly totalMemory: number;
  /** Whether this GPU can use the memory of each GPU, by ordinal; true for itself. */
  readonly canAccess: readonly boolean[];
}

/** Everything that `doctor` reports. */
export interface DoctorReport {
  readonly runtime: { readonly name: string; readonly version: string; readonly os: string; readonly arch: string };
  /** Whether consumers on any thread may release our arrays, which needs machine code to be allowed. */
  readonly releaseCallbacks: string;
  readonly libraries: readonly LibraryReport[];
  readonly cuda: { readonly available: boolean; readonly reason: string; readonly driverVersion: string | null };
  readonly gpus: readonly GpuReport[];
  readonly ucx: { readonly version: string; readonly transports: readonly string[]; readonly hasCuda: boolean } | null;
  /** The interpreter that `Python.open()` would use; null if there is none. */
  readonly python: InstalledPackages | null;
}

/** What the report needs to know about a library. */
interface Subject<T extends SymbolTable> {
  readonly library: LibraryDescription<T>;
  readonly cost: string;
  readonly fix: string;
  readonly version: (functions: ReturnType<typeof openLibrary<T>>["functions"]) => { version: string; note?: string };
}

/** Examines the machine. Never throws because something is missing. */
export function examine(): DoctorReport {
  const { runtime, platform } = ffiPort();
  const [interpreter] = findInterpreters();
  return {
    runtime: { ...runtime, ...platform },
    releaseCallbacks: releaseThunks().kind,
    libraries: [
      inspect({
        library: libcuda,
        cost: "no GPU: arrays stay in host memory",
        fix: "install NVIDIA's driver, e.g. apt-get install nvidia-driver; in a container: --gpus all",
        version: ({ opening }) => ({ version: readVersion(opening.cuDriverGetVersion) }),
      }),
      inspect({
        library: libcudart,
        cost: "handles of the CUDA runtime cannot be checked here; nothing else",
        fix: "pip install nvidia-cuda-runtime   (in an active virtualenv)",
        version: ({ opening }) => ({
          version: readVersion(opening.cudaRuntimeGetVersion),
          note: runtimeState(opening),
        }),
      }),
      inspect({
        library: libnvrtc,
        cost: "no kernels from CUDA C++",
        fix: "pip install nvidia-cuda-nvrtc   (in an active virtualenv)",
        version: ({ opening }) => {
          using arena = new NativeArena();
          const [major, minor] = [arena.out("i32"), arena.out("i32")];
          opening.nvrtcVersion(major.$address, minor.$address);
          return { version: `${major.value}.${minor.value}` };
        },
      }),
      inspect({
        library: libucp,
        cost: "no messages to other processes and machines",
        fix: "apt-get install libucx0   (or, with CUDA: pip install libucx-cu13 in an active virtualenv)",
        version: ({ opening }) => ({ version: readCString(opening.ucp_get_version_string()) }),
      }),
      inspect({
        library: { ...pythonLibrary, sonames: interpreter?.libraries ?? pythonLibrary.sonames },
        cost: "no Python in the same process",
        fix: "apt-get install libpython3.11   (3.12 on Ubuntu 24.04)",
        version: ({ opening }) => ({ version: readCString(opening.Py_GetVersion()).split(" ")[0] ?? "" }),
      }),
    ],
    ...examineCuda(),
    ucx: examineUcx(),
    python: interpreter === undefined ? null : listPackages(interpreter.executable, packages),
  };
}

/** The packages with which arrays are exchanged. */
const packages = ["numpy", "pyarrow", "torch", "cupy-cuda13x", "numba-cuda", "jax", "cuda-core"];

function inspect<T extends SymbolTable>({ library, cost, fix, version }: Subject<T>): LibraryReport {
  const { name } = library;
  try {
    const { path, functions } = openLibrary(library);
    return { name, path, ...version(functions), problem: null, searched: [], cost, fix };
  } catch (error) {
    if (!(error instanceof FfiError)) throw error;
    const attempts = error instanceof LibraryNotFoundError ? error.attempts : [];
    const searched = attempts.map((attempt) => `${attempt.path}: ${attempt.error}`);
    const problem = attempts.length > 0 ? "not found" : error.message;
    const { override } = library;
    const isChosen = (ffiPort().env(override) ?? "") !== ""; // nothing else is looked for
    const way = isChosen ? `correct ${override}, which is set, or unset it` : fix;
    return { name, path: null, version: null, problem, searched, cost, fix: way };
  }
}

/** A version that CUDA writes into an int. */
function readVersion(call: (out: bigint) => number): string {
  using arena = new NativeArena();
  const out = arena.out("i32");
  call(out.$address);
  return decodeVersion(out.value).join(".");
}

/** What libcudart itself says about the GPUs. */
function runtimeState(opening: {
  cudaGetDeviceCount: (out: bigint) => number;
  cudaGetErrorName: (code: number) => bigint;
  cudaGetErrorString: (code: number) => bigint;
}): string {
  using arena = new NativeArena();
  const out = arena.out("i32");
  const code = opening.cudaGetDeviceCount(out.$address);
  if (code === 0) return `sees ${out.value} device${out.value === 1 ? "" : "s"}`;
  return `${readCString(opening.cudaGetErrorName(code))}: ${readCString(opening.cudaGetErrorString(code))}`;
}

function examineCuda(): Pick<DoctorReport, "cuda" | "gpus"> {
  const { available, reason } = Cuda.probe();
  if (!available) return { cuda: { available, reason, driverVersion: null }, gpus: [] };
  using cuda = Cuda.open();
  const gpus = cuda.devices.map((device): GpuReport => ({
    ordinal: device.ordinal,
    name: device.name,
    uuid: device.uuid,
    pciBusId: device.pciBusId,
    computeCapability: device.computeCapability.join("."),
    totalMemory: device.totalMemory,
    canAccess: cuda.devices.map((peer) => peer === device || device.canAccessPeer(peer)),
  }));
  return { cuda: { available, reason, driverVersion: cuda.driverVersion.join(".") }, gpus };
}

function examineUcx(): DoctorReport["ucx"] {
  try {
    using ucx = Ucx.open();
    return { version: ucx.version, transports: ucx.transports(), hasCuda: ucx.hasCuda };
  } catch {
    return null; // the list of libraries says why
  }
}

/** The report as text. */
export function format(report: DoctorReport): string {
  const { runtime, libraries, cuda, gpus, ucx, python } = report;
  const lines = [
    `${runtime.name === "deno" ? "Deno" : "Bun"} ${runtime.version} on ${runtime.os} ${runtime.arch}; ` +
    `release callbacks: ${report.releaseCallbacks}`,
    "",
    "Libraries",
    ...libraries.flatMap(formatLibrary),
    "",
    "GPUs",
    ...gpus.map((gpu) =>
      `  ${gpu.ordinal}  ${gpu.name}, compute capability ${gpu.computeCapability}, ${showBytes(gpu.totalMemory)}, ` +
      `${gpu.pciBusId}, ${gpu.uuid}`
    ),
    ...(cuda.available ? [`  driver supports CUDA ${cuda.driverVersion}`] : [`  none: ${cuda.reason}`]),
    ...(gpus.length > 1 ? ["", "Peer access (row reads memory of column)", ...formatPeers(gpus)] : []),
    "",
    "UCX",
    ...(ucx === null ? ["  none"] : [
      `  ${ucx.version}, ${ucx.hasCuda ? "with CUDA" : "without CUDA: GPU memory is refused"}`,
      `  transports: ${ucx.transports.join(", ")}`,
    ]),
    "",
    "Python",
    ...formatPython(python),
  ];
  return lines.join("\n");
}

function formatPython(python: InstalledPackages | null): string[] {
  if (python === null) {
    const chosen = ffiPort().env("CAUSEWAY_PYTHON");
    return chosen
      ? [`  none: CAUSEWAY_PYTHON names ${chosen}, which is not an interpreter. Correct or unset it`]
      : ["  none: no python3 on PATH. get it: apt-get install python3"];
  }
  const packages = Object.entries(python.packages);
  const found = packages.flatMap(([name, version]) => (version === null ? [] : [`${name} ${version}`]));
  const missing = packages.flatMap(([name, version]) => (version === null ? [name] : []));
  return [
    `  ${python.version}  ${python.path}`,
    `  packages: ${found.join(", ") || "none"}; not installed: ${missing.join(", ") || "none"}`,
  ];
}

function formatLibrary({ name, path, version, note, problem, searched, cost, fix }: LibraryReport): string[] {
  if (problem === null) {
    return [`  ok       ${name.padEnd(10)} ${version}  ${path}${note === undefined ? "" : `  (${note})`}`];
  }
  const where = searched.length > 1 ? `${searched[0]}; ${searched.length - 1} more in --json` : searched[0];
  return [
    `  missing  ${name.padEnd(10)} ${cost}`,
    `           get it: ${fix}`,
    `           ${problem}${where === undefined ? "" : ` (${where})`}`,
  ];
}

function formatPeers(gpus: readonly GpuReport[]): string[] {
  return [
    `     ${gpus.map(({ ordinal }) => `${ordinal}`.padStart(4)).join("")}`,
    ...gpus.map(({ ordinal, canAccess }) =>
      `  ${`${ordinal}`.padStart(2)} ${canAccess.map((can) => (can ? "yes" : "no").padStart(4)).join("")}`
    ),
  ];
}
