/** Libraries of Python in this process, with arrays in host memory. */
import { testConsumers } from "./consumers_matrix.ts";

testConsumers("cpu", null);
