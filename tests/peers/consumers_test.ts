/** Python libraries in this process, with arrays in host memory. */
import { testConsumers } from "../support/consumers/matrix.ts";

testConsumers("cpu", null);
