import { GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import { GraphQLUpload } from 'graphql-upload-minimal';
import { parseInt64 } from '../base/int64.ts';
import { isUtcTime } from '../base/time.ts';
import { HistoryInconsistentError } from '../history/inconsistent.ts';
import { badUserInput } from './connection.ts';

/** @param node where the value stands in the document, when it stands there. */
function textOf(name: string, value: unknown, node: ValueNode | null = null): string {
  if (typeof value === 'string') return value;
  throw badUserInput(`${name} is given as a string.`, node);
}

/** A scalar that JSON has as a string. @param parse is given where it stands in the document, when it stands there. */
function scalarOf<Value>(
  name: string,
  serialize: (value: unknown) => string,
  parse: (text: string, node: ValueNode | null) => Value,
): GraphQLScalarType<Value, string> {
  return new GraphQLScalarType<Value, string>({
    name,
    serialize,
    parseValue: (value) => parse(textOf(name, value), null),
    parseLiteral: (node) => parse(textOf(name, node.kind === Kind.STRING && node.value, node), node),
  });
}

function parseBigInt(text: string, node: ValueNode | null): bigint {
  const value = parseInt64(text);
  // "-0" is another spelling of a number that has one.
  if (value === null || String(value) !== text)
    throw badUserInput('BigInt is a 64-bit integer as a decimal string.', node);
  return value;
}

function parseDateTime(text: string, node: ValueNode | null): string {
  const [, second = '', fraction = ''] = /^([^.]*?)(?:\.(\d{1,6}))?Z$/.exec(text) ?? [];
  const time = `${second}.${fraction.padEnd(6, '0')}Z`;
  if (!isUtcTime(time)) {
    throw badUserInput(
      'DateTime is RFC 3339 in UTC, as in "2026-03-02T10:00:00Z", with up to six fractional digits.',
      node,
    );
  }
  return time;
}

function parseSha256(text: string, node: ValueNode | null): string {
  if (/^[0-9a-f]{64}$/.test(text)) return text;
  throw badUserInput('Sha256 is 64 lowercase hexadecimal digits.', node);
}

/** A time of the database as it is, and never another in its place: there it may be `infinity`, or before the year 1. */
function serializeTime(time: string): string {
  if (isUtcTime(time)) return time;
  throw new HistoryInconsistentError(
    'A time in the database is outside the years 0001 to 9999; mend the row in Kilolock first.',
  );
}

/** The resolvers of the schema's scalars. */
export const scalars = {
  BigInt: scalarOf(
    'BigInt',
    (value) => String(typeof value === 'bigint' ? value : BigInt(textOf('BigInt', value))),
    parseBigInt,
  ),
  DateTime: scalarOf('DateTime', (value) => serializeTime(textOf('DateTime', value)), parseDateTime),
  Sha256: scalarOf('Sha256', (value) => textOf('Sha256', value), parseSha256),
  Upload: GraphQLUpload,
};
