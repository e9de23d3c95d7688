/**
 * From a file to a GPU, through a kernel, to a picture: how much ink 1797 handwritten digits have.
 *
 *     deno run --allow-ffi --allow-read --allow-env=NODE_ENV --allow-write=ink.png examples/plot_digits.ts ink.png
 *
 * In Bun, `bun examples/plot_digits.ts ink.png`. Without a GPU the simulator runs the kernel. It prints:
 *
 * ```text
 * uint8 (1797, 8, 8) on Simulated GPU 0
 * [  0   0   0   0   0   0   0   0   0   0   0   1   0   0  10  12 234 217
 *  257 302 272 265 134  50  28  12   2   1   0   0   0   0]
 * ink.png: 480 x 300
 * ```
 */
import { init } from "echarts";
import { initWasm, Resvg } from "@resvg/resvg-wasm";
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { Cuda, readNpy, StridedMemoryView } from "../mod.ts";

/** One thread per image: adds up its 64 pixels of 0 to 16, and increments one of 32 bins, each 16 wide. */
const ptx = `
.version 7.0
.target sm_70
.address_size 64
.visible .entry ink(.param .u64 images, .param .u64 counts, .param .u32 n) {
  .reg .pred %p;
  .reg .b32 %block, %threads, %i, %n, %sum, %pixel, %bin;
  .reg .b64 %image, %end, %counts;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %i, %tid.x;
  mad.lo.u32 %i, %block, %threads, %i;
  ld.param.u32 %n, [n];
  setp.ge.u32 %p, %i, %n;
  @%p ret;
  ld.param.u64 %image, [images];
  mad.wide.u32 %image, %i, 64, %image;
  add.u64 %end, %image, 64;
  mov.u32 %sum, 0;
pixels:
  ld.global.u8 %pixel, [%image];
  add.u32 %sum, %sum, %pixel;
  add.u64 %image, %image, 1;
  setp.lt.u64 %p, %image, %end;
  @%p bra pixels;
  shr.u32 %bin, %sum, 4;
  min.u32 %bin, %bin, 31;
  ld.param.u64 %counts, [counts];
  mad.wide.u32 %counts, %bin, 4, %counts;
  atom.global.add.u32 %bin, [%counts], 1;
}`;

const [target = "ink.png"] = process.argv.slice(2);
const fileOf = (name: string) => readFile(new URL(import.meta.resolve(name)));
using cuda = Cuda.probe().available ? Cuda.open() : Cuda.simulate();
const device = cuda.device(0);
using stream = device.createStream();
using digits = await readNpy(new URL("digits.npy", import.meta.url), { device, stream });
console.log(`${digits.dtype.name} (${digits.shape.join(", ")}) on ${device.name}`);
using counts = StridedMemoryView.zeros([32], { dtype: "uint32", device, stream });
using program = device.loadPtx(ptx);
const [images = 0] = digits.shape;
program.kernel("ink").launch(stream, Math.ceil(images / 128), 128, [digits, counts, ["uint32", images]]);
using result = counts.to("host", { stream });
console.log(`${result}`);
const chart = init(null, null, { renderer: "svg", ssr: true, width: 480, height: 300 });
chart.setOption({
  animation: false, // the picture shows the final state
  xAxis: { name: "ink", nameLocation: "middle", data: Array.from(result.toArray(), (_, bin) => bin * 16) },
  yAxis: { name: "images" },
  series: { type: "bar", data: result.toArray() },
});
await initWasm(await fileOf("@resvg/resvg-wasm/index_bg.wasm"));
const font = { fontBuffers: [await fileOf("dejavu-fonts-ttf/ttf/DejaVuSans.ttf")], defaultFontFamily: "DejaVu Sans" };
const png = new Resvg(chart.renderToSVGString(), { font }).render();
chart.dispose();
await writeFile(target, png.asPng());
console.log(`${target}: ${png.width} x ${png.height}`);
