/**
 * Where the CUDA runtime and its compiler are found. Both work without a GPU, as far as possible.
 *
 * @module
 */
import { cudart } from "../../bindings/cudart.ts";
import { nvrtc } from "../../bindings/nvrtc.ts";
import type { LibraryDescription } from "../ffi/mod.ts";

/** Where the toolkit's libraries are. */
const places = {
  wheels: ["nvidia/*/lib"],
  homes: ["CUDA_HOME", "CUDA_PATH"],
  folders: ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib"],
} as const;

/** How libcudart is found. Its streams, events and addresses are those of the driver. */
export const libcudart: LibraryDescription<typeof cudart> = {
  name: "libcudart",
  symbols: cudart,
  override: "CAUSEWAY_LIBCUDART",
  sonames: ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"],
  ...places,
  remedy: "Install the CUDA runtime: `pip install nvidia-cuda-runtime` in an active virtualenv, or the CUDA toolkit.",
};

/** How libnvrtc, which compiles CUDA C++, is found. */
export const libnvrtc: LibraryDescription<typeof nvrtc> = {
  name: "libnvrtc",
  symbols: nvrtc,
  override: "CAUSEWAY_LIBNVRTC",
  sonames: ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"],
  ...places,
  remedy:
    "Install CUDA's run-time compiler: `pip install nvidia-cuda-nvrtc` in an active virtualenv, or the CUDA toolkit.",
};
