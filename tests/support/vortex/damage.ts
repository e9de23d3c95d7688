/**
 * Damages messages and trees.
 *
 * @module
 */
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { joined, varint } from "./nodes.ts";
import type { Dice } from "./number_trees.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** Bytes damaged in one place. */
export function damagedBytes(dice: Dice, bytes: Bytes): Bytes {
  const copy = bytes.slice();
  if (copy.length === 0) return Uint8Array.of(dice.below(256));
  const at = dice.below(copy.length);
  switch (dice.below(9)) {
    case 0:
      copy[at] = (copy[at] ?? 0) ^ 1 << dice.below(8);
      return copy;
    case 1:
      copy[at] = dice.below(256);
      return copy;
    case 2:
      copy[at] = dice.pick(0, 1, 0x7f, 0x80, 0xff);
      return copy;
    case 3: { // a word that is far too large, or negative, or slightly off
      const word = at - at % 4;
      const was = (copy[word] ?? 0) + dice.pick(-4, -1, 1, 4);
      copy.set(
        dice.pick([255, 255, 255, 255], [255, 255, 255, 127], [0, 0, 0, 0], [was & 255]).slice(0, copy.length - word),
        word,
      );
      return copy;
    }
    case 4: // bytes from another position
      copy.copyWithin(at, dice.below(copy.length), dice.below(copy.length));
      return copy;
    case 5:
      return copy.slice(0, at);
    case 6:
      return joined(copy.slice(0, at), copy.slice(at + 1 + dice.below(8)));
    case 7:
      return joined(
        copy.slice(0, at),
        Uint8Array.from({ length: 1 + dice.below(8) }, () => dice.below(256)),
        copy.slice(at),
      );
    default: { // a number of a Protocol Buffers message
      const large = varint(dice.pick(0n, 1n, 255n, 1n << 20n, 1n << 31n, 1n << 40n, 1n << 53n, (1n << 64n) - 1n));
      return joined(copy.slice(0, at), large, copy.slice(at + 1));
    }
  }
}

/** A tree with one node damaged. */
export function damagedTree(dice: Dice, tree: RawNode, others: readonly RawNode[]): RawNode {
  const { buffers, metadata, children } = tree;
  if (children.length > 0 && dice.below(children.length + 1) > 0) {
    const hit = dice.below(children.length);
    return { ...tree, children: children.map((child, i) => i === hit ? damagedTree(dice, child, others) : child) };
  }
  const all = typeof buffers === "number" ? [] : buffers.filter((one) => one instanceof Uint8Array);
  const hit = dice.below(Math.max(1, all.length));
  const other = dice.pick(...others);
  switch (dice.below(10)) {
    case 0:
      return { ...tree, children: children.slice(0, -1) };
    case 1:
      return { ...tree, children: [...children, other] };
    case 2:
      return { ...tree, children: children.toReversed() };
    case 3:
      return { ...tree, id: other.id };
    case 4:
      return { ...tree, buffers: all.slice(0, -1) };
    case 5:
      return { ...tree, buffers: [...all, ...all].slice(0, all.length + 1) };
    case 6:
      return other;
    case 7:
    case 8:
      return { ...tree, metadata: damagedBytes(dice, metadata) };
    default:
      return { ...tree, buffers: all.map((one, i) => i === hit ? damagedBytes(dice, one) : one) };
  }
}
