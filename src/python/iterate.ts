/**
 * Iteration over Python objects: item by item, as Python does it; several at a time where that is unobservable.
 *
 * @module
 */
import { Handle } from "./handle.ts";
import type { ItemReader } from "./item_reader.ts";
import { type Convert, iterateGenerator } from "./iterate_generator.ts";
import { Kind } from "./kinds.ts";
import type { SequenceKind } from "./sequences.ts";

/** How many items are read ahead at first, and at most. */
const [fewest, most] = [8, 256];

/** Iterates over an object. */
export function iterate(handle: Handle, convert: Convert): Generator<unknown, void, unknown> {
  const { python, options } = handle;
  python.enter();
  try {
    const { object } = handle;
    const kind = python.kindOf(object);
    if (kind === Kind.list || kind === Kind.tuple) {
      return iterateSequence(new Handle(python, python.retain(object), options), kind, convert);
    }
    if (python.isExactly(object, "generator_type")) {
      return iterateGenerator(new Handle(python, python.retain(object), options), convert);
    }
    const isRange = python.isExactly(object, "range");
    const iterator = new Handle(python, python.check(python.api.iteration.PyObject_GetIter(object)), options);
    return iterateAny(iterator, isRange ? most : 1, convert);
  } finally {
    python.leave();
  }
}

// law python/iterateAny: python/object, python/frame, python/leaks, python/sequences
/** @param ahead how many items may be taken before they are requested */
function* iterateAny(iterator: Handle, ahead: number, convert: Convert): Generator<unknown, void> {
  const { python } = iterator;
  const reader = ahead > 1 ? python.itemReader : null; // an iterator that runs Python code may need the reader itself
  try {
    for (let count = Math.min(ahead, fewest);; count = Math.min(2 * count, ahead)) {
      const values = nextItems(iterator, count, reader, convert);
      for (let i = 0; i < values.length; i++) yield values[i];
      if (values.length < count) return;
    }
  } finally {
    iterator.close();
  }
}

/** The next items of an iterator; fewer than `count` if it is exhausted. */
function nextItems(
  { python, object, options }: Handle,
  count: number,
  reader: ItemReader | null,
  convert: Convert,
): unknown[] {
  const { PyIter_Next } = python.api.iteration;
  const values: unknown[] = [];
  python.enter();
  try {
    while (values.length < count) {
      const found = reader === null ? PyIter_Next(object) : reader.readIterated(object, count - values.length, values);
      if (found !== 0n) {
        values.push(convert(python, found, options));
      } else if (values.length < count) {
        if (python.api.errors.PyErr_Occurred() !== 0n) python.check(0n);
        break;
      }
    }
    return values;
  } finally {
    python.leave();
  }
}

// law python/iterateSequence: python/sequences, python/leaks
/**
 * Iterates as Python's own iterator does: position by position, up to the list's end at that time. Items read ahead
 * from a list are valid as long as nothing can have changed it: until Python is called, or JavaScript does something
 * else. (Python's other threads run at the same time anyway.)
 */
function* iterateSequence(sequence: Handle, kind: SequenceKind, convert: Convert): Generator<unknown, void> {
  const { python } = sequence;
  try {
    let position = 0;
    for (let count = fewest;; count = Math.min(2 * count, most)) {
      const ahead = readAhead(sequence, kind, position, count, convert);
      if (ahead === null) return;
      const { values, turn } = ahead;
      for (let i = 0; i < values.length; i++) {
        if (i > 0 && kind === Kind.list && python.turn !== turn) break;
        position++;
        yield values[i];
      }
    }
  } finally {
    sequence.close();
  }
}

/** Items that were read before they were requested. */
interface Ahead {
  readonly values: readonly unknown[];
  /** The turn in which they were read. */
  readonly turn: number;
}

/** The next items: at least one, and those after it that can be read at once; null at the end. */
function readAhead(
  { python, object, options }: Handle,
  kind: SequenceKind,
  from: number,
  count: number,
  convert: Convert,
): Ahead | null {
  python.enter();
  try {
    const { sequences } = python;
    const size = sequences.sizeOf(object, kind);
    if (from >= size) return null;
    const values: unknown[] = [];
    sequences.readValues(object, kind, from, size, count, values);
    if (values.length === 0) values.push(convert(python, sequences.itemAt(object, kind, from), options));
    if (kind === Kind.list && values.length > 1) queueMicrotask(python.endTurn); // JavaScript does something else
    return { values, turn: python.turn };
  } finally {
    python.leave();
  }
}
