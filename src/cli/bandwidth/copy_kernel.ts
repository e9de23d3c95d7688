/**
 * A kernel that copies, so that multiprocessors instead of copy engines move the bytes. In PTX, which the driver
 * compiles: no compiler has to be installed.
 *
 * @module
 */
import type { CudaDevice, CudaStream, Kernel } from "../../device/mod.ts";
import type { MemoryBuffer } from "../../memory/mod.ts";

/** The size of a copied buffer must be a multiple of this. */
export const vectorBytes = 16;

const threads = 512;
/** Vectors that each thread has in flight at a time, to hide each other's latency. */
const unrolled = 4;

const lines = (line: (i: number) => string) => Array.from({ length: unrolled }, (_, i) => `  ${line(i)}`).join("\n");
const registers = (i: number) => [0, 1, 2, 3].map((j) => `%v${4 * i + j}`).join(", ");

/** Each thread copies vectors that are one grid apart. Past the end it copies nothing. */
const ptx = `.version 7.0
.target sm_52
.address_size 64
.visible .entry causeway_copy(.param .u64 to, .param .u64 from, .param .u64 count)
{
  .reg .pred %inside<${unrolled}>, %more;
  .reg .b32 %v<${4 * unrolled}>, %block, %blocks, %size, %thread;
  .reg .b64 %to, %from, %count, %at, %grid, %i<${unrolled}>, %a<${unrolled}>, %b<${unrolled}>;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %count, [count];
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %from, %from;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %grid, %blocks, %size;
  mul.wide.u32 %at, %block, %size;
  cvt.u64.u32 %i0, %thread;
  add.u64 %at, %at, %i0;
again:
  setp.ge.u64 %more, %at, %count;
  @%more bra done;
  mov.u64 %i0, %at;
${lines((i) => i === 0 ? "" : `add.u64 %i${i}, %i${i - 1}, %grid;`)}
${lines((i) => `setp.lt.u64 %inside${i}, %i${i}, %count;`)}
${lines((i) => `shl.b64 %i${i}, %i${i}, 4;\n  add.u64 %a${i}, %from, %i${i};\n  add.u64 %b${i}, %to, %i${i};`)}
${lines((i) => `@%inside${i} ld.global.v4.u32 {${registers(i)}}, [%a${i}];`)}
${lines((i) => `@%inside${i} st.global.v4.u32 [%b${i}], {${registers(i)}};`)}
  shl.b64 %i0, %grid, ${Math.log2(unrolled)};
  add.u64 %at, %at, %i0;
  bra again;
done:
  ret;
}
`;

/** Loads the kernel. */
export function loadCopyKernel(device: CudaDevice): { readonly kernel: Kernel; close(): void } {
  const program = device.loadPtx(ptx);
  return { kernel: program.kernel("causeway_copy"), close: () => program.close() };
}

/** Enqueues a copy of all bytes by the multiprocessors of the stream's device, which must reach both buffers. */
export function copyByKernel(kernel: Kernel, stream: CudaStream, to: MemoryBuffer, from: MemoryBuffer): void {
  const vectors = from.size / vectorBytes;
  const enough = stream.device.attribute("MULTIPROCESSOR_COUNT") * 4; // 2048 threads each: all that fit
  const grid = Math.max(1, Math.min(enough, Math.ceil(vectors / (threads * unrolled))));
  kernel.launch(stream, grid, threads, [to, from, BigInt(vectors)]);
}
