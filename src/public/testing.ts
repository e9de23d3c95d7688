/**
 * What tests need: a driver without a GPU, one that checks the order of calls, and a count of live exports.
 *
 * @module
 */
export { SimulatedDriver, simulateDriver } from "../sim/mod.ts";
export { CausalityError, checkDriver } from "../checker/mod.ts";
export { liveExports } from "../order/mod.ts";
