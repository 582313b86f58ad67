import { MINUS, NINE, POINT, ZERO } from './json-bytes.ts';
import type { PieceWriter } from './piece-writer.ts';

/**
 * Writes the number between `start` and `end` as PostgreSQL's `numeric` prints it: without an exponent, with
 * as many decimals as the spelling has after the exponent moved the point, and zero without a sign.
 */
export function writeJsonbNumber(json: Buffer, start: number, end: number, out: PieceWriter): void {
  const integer = json[start] === MINUS ? start + 1 : start;
  const integerEnd = endOfDigits(json, integer);
  const fraction = json[integerEnd] === POINT ? integerEnd + 1 : integerEnd;
  const fractionEnd = endOfDigits(json, fraction);
  const exponent = fractionEnd < end ? Number(json.toString('latin1', fractionEnd + 1, end)) : 0;

  const integerDigits = integerEnd - integer;
  const digits = integerDigits + fractionEnd - fraction;
  /** The digit at a place that is counted from the first as spelled, without regard to the point. */
  const digitAt = (place: number) => {
    if (place < 0 || place >= digits) return ZERO;
    return json[place < integerDigits ? integer + place : fraction + place - integerDigits] ?? ZERO;
  };
  let first = 0;
  while (first < digits && digitAt(first) === ZERO) first++;
  const isZero = first === digits;
  const point = integerDigits + exponent;
  const scale = Math.max(0, digits - point);

  if (!isZero && integer > start) out.byte(MINUS);
  if (isZero || first >= point) out.byte(ZERO);
  else for (let place = first; place < point; place++) out.byte(digitAt(place));
  if (scale > 0) out.byte(POINT);
  for (let place = point; place < point + scale; place++) out.byte(digitAt(place));
}

function endOfDigits(json: Buffer, start: number): number {
  let p = start;
  for (;;) {
    const c = json[p] ?? 0;
    if (c < ZERO || c > NINE) return p;
    p++;
  }
}
