/** Bytes that contradict themselves: an index out of bounds, a run that ends before it begins. */
export class DataError extends Error {
  /** The name of the class. */
  override readonly name = "DataError";
}
