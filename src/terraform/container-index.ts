import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  endOfContainer,
  endOfScalar,
  endOfString,
  OPEN_BRACE,
  OPEN_BRACKET,
  opensContainer,
  QUOTE,
  skipWhitespace,
} from './json-bytes.ts';
import { OffsetTable } from './offset-table.ts';

const START = 0;
const END = 1;
/** Containers of so many bytes are walked again: there can be many, and few inside one another. */
const SHORT = 64;

/**
 * Where the objects and arrays inside a JSON value end, for those that are values of members. One pass
 * finds them all, so that stepping over a member never walks a long inside again.
 */
export class ContainerIndex {
  readonly #table = new OffsetTable(2);
  #depth = 0;
  #totalDepth = 0;

  /** How many objects and arrays were open at once, at most, in the text last read. */
  get depth(): number {
    return this.#depth;
  }

  /** The depths at which its commas and brackets stand, added up: what each costs when it has a line of its own. */
  get totalDepth(): number {
    return this.#totalDepth;
  }

  /** Finds them in `json`, known to be JSON, and forgets those of the text before. */
  read(json: Buffer): void {
    const table = this.#table;
    table.truncate(0);
    this.#depth = 0;
    this.#totalDepth = 0;
    const open: number[] = [];
    let isValue = false;
    let p = 0;
    while (p < json.length) {
      switch (json[p]) {
        case QUOTE:
          p = endOfString(json, p);
          isValue = false;
          continue;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          if (isValue) {
            const row = table.add();
            table.set(row, START, p);
            open.push(row);
          } else open.push(-1);
          if (open.length > this.#depth) this.#depth = open.length;
          this.#totalDepth += open.length;
          isValue = false;
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET: {
          const row = open.pop() ?? -1;
          this.#totalDepth += open.length;
          if (row === -1) break;
          // What stands inside a short one is shorter still, and has gone before.
          if (p - table.get(row, START) < SHORT) table.truncate(row);
          else table.set(row, END, p + 1);
          break;
        }
        case COMMA:
          this.#totalDepth += open.length;
          isValue = false;
          break;
        case COLON:
          p = skipWhitespace(json, p + 1);
          isValue = true;
          continue;
        default:
          isValue = false;
      }
      p++;
    }
  }

  /** The position after the value at `at` in the text last read, where the value of a member must stand. */
  endOf(json: Buffer, at: number): number {
    if (!opensContainer(json[at])) return endOfScalar(json, at);
    const table = this.#table;
    let low = 0;
    let high = table.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (table.get(middle, START) < at) low = middle + 1;
      else high = middle;
    }
    return table.get(low, START) === at ? table.get(low, END) : endOfContainer(json, at);
  }
}
