import { GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import { GraphQLUpload } from 'graphql-upload-minimal';
import { parseInt64 } from '../base/int64.ts';
import { isUtcTime } from '../base/time.ts';
import { HistoryInconsistentError } from '../history/inconsistent.ts';
import { badUserInput } from './connection.ts';

const isSha256 = (text: string) => /^[0-9a-f]{64}$/.test(text);

function textOf(name: string, value: unknown): string {
  if (typeof value !== 'string') throw badUserInput(`${name} is given as a string.`);
  return value;
}

function literalOf(name: string, node: ValueNode): string {
  if (node.kind !== Kind.STRING) throw badUserInput(`${name} is given as a string.`, node);
  return node.value;
}

function parseBigInt(text: string, node: ValueNode | null = null): bigint {
  const value = parseInt64(text);
  // "-0" is another spelling of a number that has one.
  if (value === null || String(value) !== text)
    throw badUserInput('BigInt is a 64-bit integer as a decimal string.', node);
  return value;
}

function parseText(name: string, isGood: (text: string) => boolean, expected: string) {
  return (text: string, node: ValueNode | null = null): string => {
    if (!isGood(text)) throw badUserInput(`${name} is ${expected}.`, node);
    return text;
  };
}

function parseDateTime(text: string, node: ValueNode | null = null): string {
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

const parseSha256 = parseText('Sha256', isSha256, '64 lowercase hexadecimal digits');

/** A time of the database as it is, and never another in its place: there it may be `infinity`, or before the year 1. */
function serializeTime(time: string): string {
  if (isUtcTime(time)) return time;
  throw new HistoryInconsistentError(
    'A time in the database is outside the years 0001 to 9999; mend the row in Kilolock first.',
  );
}

/** The resolvers of the schema's scalars. */
export const scalars = {
  BigInt: new GraphQLScalarType<bigint, string>({
    name: 'BigInt',
    serialize: (value) => String(typeof value === 'bigint' ? value : BigInt(textOf('BigInt', value))),
    parseValue: (value) => parseBigInt(textOf('BigInt', value)),
    parseLiteral: (node) => parseBigInt(literalOf('BigInt', node), node),
  }),
  DateTime: new GraphQLScalarType<string, string>({
    name: 'DateTime',
    serialize: (value) => serializeTime(textOf('DateTime', value)),
    parseValue: (value) => parseDateTime(textOf('DateTime', value)),
    parseLiteral: (node) => parseDateTime(literalOf('DateTime', node), node),
  }),
  Sha256: new GraphQLScalarType<string, string>({
    name: 'Sha256',
    serialize: (value) => textOf('Sha256', value),
    parseValue: (value) => parseSha256(textOf('Sha256', value)),
    parseLiteral: (node) => parseSha256(literalOf('Sha256', node), node),
  }),
  Upload: GraphQLUpload,
};
