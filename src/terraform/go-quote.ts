/** Unicode categories that Go's `strconv.IsPrint` prints, besides the ASCII space. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u;

const ESCAPES: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

/**
 * Code points that became printable after Unicode 15.0, the version of Go's own tables (Go 1.21 to 1.26).
 * Node's tables are newer, and one character printed here but escaped there would be another address.
 */
const PRINTABLE_SINCE_UNICODE_15 = (
  '88f-897 c5c cdc 1acf-1aeb 1b4e-1b4f 1b7f 1c89-1c8a 20c1 2427-2429 2b96 2ffc-2fff 31e4-31ef a7cb-a7cf a7d2 ' +
  'a7d4 a7da-a7f1 fbc3-fbd2 fd90-fd91 fdc8-fdce 105c0-105f3 10940-10959 10d40-10d8f 10ec2-10efc 11380-113e2 ' +
  '116d0-116e3 11b60-11bf9 11db0-11de9 11f5a 13460-143fa 16100-16139 16d40-16d79 16ea0-16ed3 16ff2-16ff6 ' +
  '187f8-187ff 18cff 18d09-18df2 1cc00-1cef0 1e5d0-1e6ff 1f6d8 1f777-1f77a 1f8b2-1f8d8 1fa54-1fa57 ' +
  '1fa89-1fa8f 1fabe 1fac6-1facd 1fadc-1fadf 1fae9-1faef 1fbcb-1fbef 1fbfa 2b73a-2b73f 2cea2-2cead ' +
  '2ebf0-2ee5d 323b0-33479'
)
  .split(' ')
  .map((range) => {
    const [first = '', last = first] = range.split('-');
    return [Number.parseInt(first, 16), Number.parseInt(last, 16)] as const;
  });

/**
 * The string as Go's `strconv.Quote` writes it, quotes included: how Kilolock writes a `for_each` key in
 * an address (data model 3.3). Not the quoting of JSON, and not Terraform's own.
 */
export function goQuote(text: string): string {
  let quoted = '"';
  for (const character of text) {
    quoted += isPrintable(character) ? (ESCAPES[character] ?? character) : escapeCharacter(character);
  }
  return `${quoted}"`;
}

function isPrintable(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x7f) return code >= 0x20 || character in ESCAPES;
  return (
    PRINTABLE.test(character) &&
    !PRINTABLE_SINCE_UNICODE_15.some(([first, last]) => first <= code && code <= last)
  );
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, '0')}`;
  return `\\U${code.toString(16).padStart(8, '0')}`;
}
