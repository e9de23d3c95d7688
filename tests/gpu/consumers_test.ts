/** Python libraries in this process, with arrays in device memory. */
import { testConsumers } from "../support/consumers/matrix.ts";
import { missingGpus } from "../support/gpu.ts";

testConsumers("gpu", missingGpus());
