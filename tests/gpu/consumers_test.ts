/** Libraries of Python in this process, with arrays in device memory. */
import { testConsumers } from "../peers/consumers_matrix.ts";
import { missingGpus } from "../support/gpu.ts";

testConsumers("gpu", missingGpus());
