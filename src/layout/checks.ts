/**
 * The room's second door, for what the other rooms use and programs do not: how wrong arguments and options are refused.
 *
 * @module
 */
export { checkOptions, none, type OptionNames, unknownOption } from "./options.ts";
export { noSize, show } from "./shape.ts";
