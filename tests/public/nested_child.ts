/** Shows a view nested in other objects, as this runtime's console does. */
import { StridedMemoryView } from "../../mod.ts";

const v = StridedMemoryView.fromArray([[1, 2], [3, 4]]);
console.log({ v });
console.log([v]);
