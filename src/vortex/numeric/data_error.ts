/** Bytes that contradict themselves: an index out of bounds, a run that ends before it begins. */
export class DataError extends Error {
  /** As the class is called. */
  override readonly name = "DataError";
}
