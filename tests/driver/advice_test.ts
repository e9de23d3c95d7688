/** Errors that say how to fix them. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaError } from "../../mod.ts";

const ptx = `.version 7.0
.target sm_52
.address_size 64
.visible .entry _Z5storePi(.param .u64 at)
{
.reg .b64 %d<3>; .reg .b32 %r;
ld.param.u64 %d0, [at];
mov.u32 %r, 3;
st.global.u32 [%d0], %r;
ret;
}`;

test("the error about a kernel that is not found by its C++ name suggests extern C", () => {
  using cuda = Cuda.simulate();
  const program = cuda.device(0).loadPtx(ptx);
  const error = assertThrows(() => program.kernel("store"), CudaError, 'declare it `extern "C" __global__`');
  assert(error instanceof CudaError);
  assertEquals([error.codeName, error.call], ["CUDA_ERROR_NOT_FOUND", "cuModuleGetFunction of store"]);
  program.kernel("_Z5storePi");
});

test("the simulator's details of a fault are in the error itself, which does not advise to use the simulator", () => {
  using cuda = Cuda.simulate();
  const { defaultStream: stream } = cuda.device(0);
  const kernel = cuda.device(0).loadPtx(ptx).kernel("_Z5storePi");
  kernel.launch(stream, 1, 1, [64n]);
  for (const _ of ["first", "again"]) {
    const error = assertThrows(
      () => stream.synchronize(),
      CudaError,
      "PTX line 9: illegal address: write of 4 bytes at 0x40",
    );
    assert(!`${error}`.includes("Cuda.simulate()"), `${error}`);
  }
});
