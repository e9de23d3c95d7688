/**
 * `causeway topology`: which GPUs there are, and what connects them.
 *
 * `examine.ts` queries the driver, and the system about the bus (`pci.ts`); `format.ts` formats the result as text and
 * SVG.
 *
 * @module
 */
import { command, helpHint } from "../command.ts";
import { openCuda, simulateOption } from "../open_cuda.ts";
import { svgOption, writeSvg } from "../write_svg.ts";
import { examineTopology } from "./examine.ts";
import { formatTopology, topologySvg } from "./format.ts";
import { print } from "../print.ts";

/** The command. */
export const topology = command({
  name: "topology",
  takes: "[options]",
  summary: "the GPUs of this machine, and what connects them: a table, JSON or a picture",
  about: "Lists the GPUs, and says for each pair whether one can use the memory of the other, and over what.\n" +
    "Only queries: creates no context on a GPU, measures nothing and changes nothing. `bandwidth` measures.",
  options: {
    json: { type: "boolean", says: "the report as JSON" },
    svg: svgOption,
    simulate: simulateOption,
  },
  examples: ["", "--svg links.svg", "--simulate 4"],
  failsIf: "there is no GPU",
  run: async ({ values }) => {
    const opened = await openCuda(values.simulate, helpHint("topology"));
    using cuda = opened.cuda;
    const report = examineTopology(cuda, opened.isSimulated);
    print(values.json === true ? JSON.stringify(report, null, 2) : formatTopology(report));
    if (values.svg !== undefined) writeSvg(values.svg, topologySvg(report)); // last: it may fail
    return 0;
  },
});
