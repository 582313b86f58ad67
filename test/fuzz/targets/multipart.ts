import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { type Choices, choices } from '../../support/choices.ts';
import { startTestService } from '../../support/service.ts';
import type { FuzzTarget } from '../target.ts';
import { damagedBytes, damagedJson, oddJson } from './odd-json.ts';
import { ServiceAnswers } from './service-answers.ts';

const TOKEN = 'THE-TOKEN';
const FILES = [
  Buffer.from('no archive'),
  Buffer.alloc(0),
  Buffer.alloc(100_000, 'x'),
  readFileSync(new URL('../../archive/golden/v1.klstate', import.meta.url)),
];
const QUERIES = [
  'mutation ($file: Upload!) { importStateArchive(input: { file: $file, name: "fuzz", dryRun: true, waitSeconds: 0 }) { operation { id } userErrors { code path } } }',
  'mutation ($input: ImportStateArchiveInput!) { importStateArchive(input: $input) { operation { id } userErrors { code path } } }',
  'mutation ($file: Upload!) { importStateSnapshot(input: { file: $file, name: "fuzz" }) { version { serial } userErrors { code } } }',
  'mutation ($file: Upload) { a: importStateSnapshot(input: { file: $file, name: "a" }) { userErrors { code } } b: importStateSnapshot(input: { file: $file, name: "b" }) { userErrors { code } } }',
  '{ stateArchives { nodes { id } } }',
  '{',
];
const VARIABLES = [
  '{"file": null}',
  '{"input": {"file": null, "name": "fuzz", "dryRun": true, "waitSeconds": 0}}',
  '{}',
  '{"file": "x"}',
  '[null]',
  'null',
];
const PATHS = [
  'variables.file',
  'variables.input.file',
  'variables',
  'variables.__proto__.file',
  'variables.constructor.prototype.x',
  'query',
  '',
  'variables.file.0',
  'operationName',
  'variables.input.__proto__',
  `variables${'.a'.repeat(50)}`,
];
const BOUNDARIES = [
  'fuzz-boundary',
  'x',
  '-',
  '--',
  'a b',
  '',
  "'()+_,-./:=?",
  'b'.repeat(71),
  'b'.repeat(2000),
];

/** A raw HTTP request; the credential stands in it as {@link TOKEN}. */
function build(choice: Choices): Buffer {
  const boundary = choice.once(4) ? choice.of(BOUNDARIES) : 'fuzz-boundary';
  let parts = [
    part(choice, 'operations', Buffer.from(operations(choice))),
    part(choice, 'map', Buffer.from(map(choice))),
    part(
      choice,
      '0',
      choice.of(FILES),
      choice.of(['state.klstate', '../../x', '', '\u202e', 'a"b', 'x'.repeat(5000)]),
    ),
  ];
  if (choice.once(8)) parts = parts.toSpliced(choice.below(3), 1);
  if (choice.once(8)) parts = [...parts, choice.of(parts)];
  if (choice.once(8)) parts = parts.toReversed();
  const pieces = parts.flatMap((each) => [
    Buffer.from(`--${boundary}\r\n`),
    each,
    Buffer.from(choice.once(20) ? '\n' : '\r\n'),
  ]);
  let body: Buffer = Buffer.concat([
    ...pieces,
    Buffer.from(
      choice.once(10)
        ? choice.of(['', `--${boundary}`, `--${boundary}--`, `--${boundary}--\r\n--${boundary}\r\n`])
        : `--${boundary}--\r\n`,
    ),
  ]);
  if (choice.once(10)) body = damagedBytes(body, choice);
  const quoted = choice.once(4) ? `"${boundary}"` : boundary;
  const type = choice.once(10)
    ? choice.of([
        'multipart/form-data',
        'Multipart/Form-Data ; Boundary=fuzz-boundary',
        'multipart/mixed; boundary=fuzz-boundary',
        `multipart/form-data; boundary=${quoted}; boundary=x`,
        'multipart/form-data; boundary',
        `multipart/form-data; charset=utf-16; boundary=${quoted}`,
        `multipart/form-data${'; a=b'.repeat(500)}`,
      ])
    : `multipart/form-data; boundary=${quoted}`;
  const length = choice.once(12) ? choice.of([0, body.length - 1, body.length + 1, 9_000_000]) : body.length;
  const isChunked = choice.once(5);
  const head = [
    'POST /graphql HTTP/1.1',
    'host: fuzz',
    'connection: close',
    ...(choice.once(20) ? [] : ['apollo-require-preflight: 1']),
    ...(choice.once(20) ? [] : [`authorization: Bearer ${TOKEN}`]),
    `content-type: ${type}`,
    ...(choice.once(30) ? ['content-encoding: gzip'] : []),
    isChunked ? 'transfer-encoding: chunked' : `content-length: ${length}`,
  ];
  const sent = isChunked ? chunked(body, choice) : body;
  return Buffer.concat([
    Buffer.from(`${head.join('\r\n')}\r\n\r\n`),
    choice.once(12) ? sent.subarray(0, choice.below(sent.length + 1)) : sent,
  ]);
}

function part(choice: Choices, name: string, data: Buffer, fileName?: string): Buffer {
  const spelt = choice.once(12) ? choice.of(['', 'x', name.toUpperCase(), '__proto__', '1']) : name;
  const file =
    fileName === undefined
      ? ''
      : choice.once(6)
        ? `; filename*=UTF-8''${encodeURIComponent(fileName)}`
        : `; filename="${fileName}"`;
  const headers = [
    choice.once(20)
      ? 'content-disposition: attachment'
      : `content-disposition: form-data; name="${spelt}"${file}`,
    ...(choice.once(4)
      ? [
          choice.of([
            'content-type: application/octet-stream',
            'content-type: text/plain; charset=utf-16le',
            'content-transfer-encoding: base64',
            ': x',
            'x',
            `x: ${'y'.repeat(20_000)}`,
          ]),
        ]
      : []),
  ];
  return Buffer.concat([Buffer.from(`${headers.join('\r\n')}\r\n\r\n`), data]);
}

function operations(choice: Choices): string {
  const json = `{"query": ${JSON.stringify(choice.of(QUERIES))}, "variables": ${choice.of(VARIABLES)}}`;
  if (choice.once(8)) return damagedJson(json, choice);
  if (choice.once(12)) return choice.of([oddJson(choice), `[${json}]`, 'x'.repeat(1_100_000)]);
  return json;
}

function map(choice: Choices): string {
  const json = JSON.stringify({ 0: [choice.once(3) ? choice.of(PATHS) : 'variables.file'] });
  if (choice.once(8)) return damagedJson(json, choice);
  if (choice.once(12))
    return choice.of([
      oddJson(choice),
      '{"0": ["variables.file", "variables.file"]}',
      '{"0": ["variables.file"], "1": ["variables.file"]}',
    ]);
  return json;
}

function chunked(body: Buffer, choice: Choices): Buffer {
  const at = choice.below(body.length + 1);
  const pieces = [body.subarray(0, at), body.subarray(at)].filter((piece) => piece.length > 0);
  const chunks = pieces.flatMap((piece) => [
    Buffer.from(`${piece.length.toString(16)}\r\n`),
    piece,
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([
    ...chunks,
    Buffer.from(choice.once(10) ? choice.of(['', '0\r\n', 'zz\r\n']) : '0\r\n\r\n'),
  ]);
}

/** How long the service may take to end a connection whose client has said all it had, in milliseconds. */
const HANG_MS = 60_000;

/** Multipart requests, byte for byte on a socket: answered or hung up on, never INTERNAL, and no error logged. */
export const multipartTarget: FuzzTarget<Buffer> = {
  name: 'multipart',
  inputs: choices(80).map(build),
  encode: (input) => input,
  decode: (file) => file,
  runsInSuite: 40,
  async open() {
    const service = await startTestService({
      MAX_INLINE_UPLOAD_BYTES: '200000',
      MAX_OPERATIONS_PER_PRINCIPAL: '1000',
      LOG_LEVEL: 'info',
    });
    const answers = new ServiceAnswers(service);
    const { port } = new URL(service.url);
    return {
      async check(request) {
        const split = request.indexOf('\r\n\r\n');
        const head = request.toString('latin1', 0, split).replace(TOKEN, await service.token());
        const answer = await exchange(Number(port), [Buffer.from(head, 'latin1'), request.subarray(split)]);
        const [, status = '0'] = /^HTTP\/1\.1 (\d{3}) /.exec(answer) ?? [];
        const text = answer.slice(answer.indexOf('\r\n\r\n') + 4);
        // A request that was cut off has nobody left to answer; the log tells what became of it.
        answers.check(Number(status), answer === '' ? '{}' : text);
      },
      close: () => service.stop(),
    };
  },
};

/** Sends bytes on a connection of their own, says that there are no more, and receives until the service hangs up. */
async function exchange(port: number, pieces: readonly Buffer[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const received: Buffer[] = [];
  socket.on('data', (chunk) => received.push(chunk));
  // A service that has heard enough resets the connection of who goes on, and what it answered may be lost.
  let isReset = false;
  socket.on('error', () => {
    isReset = true;
  });
  socket.setTimeout(HANG_MS, () => socket.destroy(new Error('hang')));
  let isHanging = false;
  socket.on('timeout', () => {
    isHanging = true;
  });
  for (const piece of pieces) socket.write(piece);
  socket.end();
  await new Promise((resolve) => socket.once('close', resolve));
  if (isHanging) throw new Error('The connection was left open.');
  return isReset ? '' : Buffer.concat(received).toString('latin1');
}
