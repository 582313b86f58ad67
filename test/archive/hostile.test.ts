import { readFile } from 'node:fs/promises';
import { zstdCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { type ArchiveLimits, DEFAULT_ARCHIVE_LIMITS } from '../../src/archive/format.ts';
import { readArchive } from '../../src/archive/reader.ts';
import { buildArchive } from './support/build-archive.ts';
import {
  type Changes,
  changed,
  gzip,
  type HandmadeMember,
  sha256,
  summed,
  takeApart,
  tarOf,
  tarred,
  verdict,
  withJson,
  withMember,
  zstd,
} from './support/handmade.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();
let archive: Buffer;
let members: HandmadeMember[];

beforeAll(async () => {
  await buildArchive(sampleHistory, path('sample.klstate'));
  archive = await readFile(path('sample.klstate'));
  members = await takeApart(archive);
});

/** An archive of these members, with sums that agree. */
async function repacked(changed: readonly HandmadeMember[]): Promise<Buffer> {
  return zstd(await tarred(summed(changed)));
}

function at(name: string): number {
  return members.findIndex((member) => member.name === name);
}

function moved(name: string, to: number): HandmadeMember[] {
  const rest = members.filter((member) => member.name !== name);
  return [...rest.slice(0, to), ...members.filter((member) => member.name === name), ...rest.slice(to)];
}

function without(name: string): HandmadeMember[] {
  return members.filter((member) => member.name !== name);
}

function withHeader(name: string, header: HandmadeMember['header'], data?: string): HandmadeMember[] {
  return members.map((member) =>
    member.name === name
      ? { ...member, ...(header && { header }), ...(data !== undefined && { data: Buffer.from(data) }) }
      : member,
  );
}

type Case = [what: string, make: () => Promise<Uint8Array> | Uint8Array, refusal: object];

function refuses(cases: Case[]): void {
  it.each(cases)('%s', async (_, make, refusal) => {
    await expect(verdict(await make())).rejects.toMatchObject({ name: 'ArchiveError', ...refusal });
  });
}

/** The archive in a gzip member whose header has this name (RFC 1952, 2.3). */
function gzipNamed(name: string, flags = 8): Buffer {
  const file = gzip(tarOf(archive));
  const header = Buffer.from(file.subarray(0, 10));
  header[3] = flags;
  return Buffer.concat([header, Buffer.from(`${name}\0`), file.subarray(10)]);
}

describe('an honest archive', () => {
  it('is accepted from a tar of another make, in zstd, gzip or bare', async () => {
    const tar = await tarred(members);
    const expected = await verdict(archive);
    for (const file of [zstd(tar), gzip(tar), tar]) {
      const { historyDigest, sha256: digest, sizeBytes } = await verdict(file);
      expect(historyDigest).toBe(expected.historyDigest);
      expect(digest).toBe(sha256(file));
      expect(sizeBytes).toBe(BigInt(file.length));
    }
  });

  it('is accepted one byte at a time', async () => {
    const expected = await verdict(archive);
    expect(await verdict(archive, {}, 1)).toEqual(expected);
    expect((await verdict(gzip(tarOf(archive)), {}, 1)).historyDigest).toBe(expected.historyDigest);
  });

  it('is accepted from a gzip that tells the name of its file, the longest that file systems have', async () => {
    const expected = await verdict(archive);
    const file = gzipNamed('n'.repeat(255));
    for (const size of [1, 300, 100_000]) {
      expect((await verdict(file, {}, size)).historyDigest).toBe(expected.historyDigest);
    }
  });

  it('is accepted when a tool padded its tar with more zero blocks', async () => {
    await expect(verdict(zstd(Buffer.concat([tarOf(archive), Buffer.alloc(8192)])))).resolves.toBeDefined();
  });
});

describe('another kind of file is ARCHIVE_UNSUPPORTED_FORMAT and called by what it is', () => {
  const unsupported = (message: RegExp) => matching({ code: 'ARCHIVE_UNSUPPORTED_FORMAT', message });
  refuses([
    ['an empty file', () => Buffer.alloc(0), unsupported(/an empty file/)],
    ['a state document', () => Buffer.from('{"version": 4}'), unsupported(/7b227665 \(JSON: a snapshot/)],
    ['a zip', () => Buffer.from('PK\x03\x04'), unsupported(/\(zip\)/)],
    ['a gzip with a name without an end', () => gzipNamed('n'.repeat(600)), unsupported(/endless file name/)],
    ['a gzip with extra fields', () => gzipNamed('', 4), unsupported(/extra fields/)],
    ['a gzip with a comment', () => gzipNamed('', 16), unsupported(/extra fields/)],
    ['zeros', () => Buffer.alloc(4096), unsupported(/begins with 00000000/)],
    [
      'a zstd frame that needs a dictionary',
      () => frameWith({ descriptor: 0b101 }),
      unsupported(/dictionary/),
    ],
  ]);
});

describe('another version of the format is ARCHIVE_UNSUPPORTED_FORMAT and names both sides', () => {
  const manifest = (changes: Changes) => async () => repacked(withJson(members, 'manifest.json', changes));
  refuses([
    [
      'a later major version',
      manifest({ archive_format: 'kilolock-state-archive/v2' }),
      matching({ code: 'ARCHIVE_UNSUPPORTED_FORMAT', message: /archive\/v2".*archive\/v1"/ }),
    ],
    [
      'a later version of another shape',
      manifest({ archive_format: 'k/v9', state: undefined, versions: {} }),
      matching({ code: 'ARCHIVE_UNSUPPORTED_FORMAT', message: /"k\/v9"/ }),
    ],
    [
      'a later version that knows nothing of features',
      manifest({ archive_format: 'kilolock-state-archive/v2', required_features: undefined }),
      matching({ code: 'ARCHIVE_UNSUPPORTED_FORMAT', message: /v2/ }),
    ],
    [
      'a later version in which a field may be given twice',
      async () =>
        repacked(
          withMember(
            withJson(members, 'manifest.json', { archive_format: 'kilolock-state-archive/v2' }),
            'manifest.json',
            (data) => String(data).replace('{', '{"x": 1, "x": 2,'),
          ),
        ),
      matching({ code: 'ARCHIVE_UNSUPPORTED_FORMAT', message: /v2/ }),
    ],
    [
      'a feature it requires',
      manifest({ required_features: ['encrypted-states'] }),
      matching({ code: 'ARCHIVE_UNSUPPORTED_FORMAT', message: /"encrypted-states".*no features/ }),
    ],
  ]);
});

describe('what no archive holds is ARCHIVE_UNSAFE', () => {
  const unsafe = (member: string) => ({ code: 'ARCHIVE_UNSAFE', member });
  const extra = (name: string, header?: HandmadeMember['header']) => async () =>
    repacked([
      ...members.slice(0, 3),
      { name, data: Buffer.alloc(0), ...(header && { header }) },
      ...members.slice(3),
    ]);
  refuses([
    ['a member of an unknown name', extra('README.md'), unsafe('README.md')],
    ['a path that climbs out', extra('../../etc/passwd'), unsafe('../../etc/passwd')],
    ['an absolute path', extra('/etc/passwd'), unsafe('/etc/passwd')],
    ['a known name in another spelling', extra('./manifest.json'), unsafe('./manifest.json')],
    ['a serial with a leading zero', extra('versions/02.tfstate.json'), unsafe('versions/02.tfstate.json')],
    ['a directory', extra('versions/', { type: 'directory' }), unsafe('versions/')],
    [
      'a symbolic link',
      extra('tags.json', { type: 'symlink', linkname: '/etc/passwd' }),
      unsafe('tags.json'),
    ],
    ['a hard link', extra('tags.json', { type: 'link', linkname: 'manifest.json' }), unsafe('tags.json')],
    ['a device', extra('tags.json', { type: 'character-device' }), unsafe('tags.json')],
    ['a FIFO', extra('tags.json', { type: 'fifo' }), unsafe('tags.json')],
    [
      'a pax header that gives another path',
      async () => zstd(await tarred(summed(withHeader('tags.json', { pax: { path: 'export.json' } })))),
      { code: 'ARCHIVE_UNSAFE', message: expect.stringContaining('a pax header') },
    ],
    [
      'a pax header that gives another size',
      async () => zstd(await tarred(summed(withHeader('tags.json', { pax: { size: '1' } })))),
      { code: 'ARCHIVE_UNSAFE' },
    ],
    [
      'a pax header that gives a link',
      async () => zstd(await tarred(summed(withHeader('tags.json', { pax: { linkpath: '/etc/passwd' } })))),
      { code: 'ARCHIVE_UNSAFE' },
    ],
    ['a global pax header', () => zstd(retyped('tags.json', 'g')), unsafe('tags.json')],
    ['a GNU long name', () => zstd(retyped('tags.json', 'L')), unsafe('tags.json')],
    ['a GNU long link name', () => zstd(retyped('tags.json', 'K')), unsafe('tags.json')],
    ['a sparse file', () => zstd(retyped('tags.json', 'S')), unsafe('tags.json')],
    [
      'a name in two parts',
      () => zstd(patched('tags.json', (header) => header.write('versions', 345))),
      unsafe('tags.json'),
    ],
    [
      'the target of a link on a regular file',
      () => zstd(patched('tags.json', (header) => header.write('x', 157))),
      unsafe('tags.json'),
    ],
    [
      'a name that goes on behind its end',
      () => zstd(patched('tags.json', (header) => header.write('x', 40))),
      { code: 'ARCHIVE_UNSAFE' },
    ],
    [
      'a size that is not octal',
      () => zstd(patched('tags.json', (header) => header.fill(0x80, 124, 125))),
      unsafe('tags.json'),
    ],
    [
      'a header older than ustar',
      () => zstd(patched('tags.json', (header) => header.fill(0, 257, 265))),
      unsafe('tags.json'),
    ],
    [
      'a member given twice',
      async () => repacked([...members.slice(0, 2), ...members.slice(1)]),
      unsafe('tags.json'),
    ],
    [
      'a version given twice',
      async () => repacked(members.flatMap((m) => (m.name === 'versions/2.tfstate.json' ? [m, m] : [m]))),
      unsafe('versions/2.tfstate.json'),
    ],
    [
      'a member behind the sums',
      async () => zstd(await tarred([...members, { name: 'tags.json', data: Buffer.alloc(0) }])),
      unsafe('tags.json'),
    ],
    [
      'a field that would become a prototype',
      async () =>
        repacked(
          withMember(members, 'export.json', (data) => String(data).replace('{', '{"__proto__": {},')),
        ),
      unsafe('export.json'),
    ],
    [
      'a field that would become a prototype, deep in one that nobody knows',
      async () =>
        repacked(
          withMember(members, 'events.ndjson', (data) =>
            String(data).replace('{', '{"novelty":[{"\\u005f_proto__":{}}],'),
          ),
        ),
      unsafe('events.ndjson'),
    ],
    [
      'something behind the fields of a tar header',
      () => zstd(patched('tags.json', (header) => header.write('x', 511))),
      unsafe('tags.json'),
    ],
  ]);

  it('while a header that `tar` writes of itself, with the magic of GNU, is read', async () => {
    const gnu = patched('tags.json', (header) => header.write('ustar  \0', 257, 'latin1'));
    await expect(verdict(zstd(gnu))).resolves.toBeDefined();
  });
});

describe('members out of their places are ARCHIVE_INCONSISTENT', () => {
  const misplaced = (member: string) => ({ code: 'ARCHIVE_INCONSISTENT', member });
  refuses([
    ['tags before the manifest', async () => repacked(moved('tags.json', 0)), misplaced('tags.json')],
    ['no manifest', async () => repacked(without('manifest.json')), misplaced('tags.json')],
    ['no tags', async () => repacked(without('tags.json')), misplaced('events.ndjson')],
    ['no events', async () => repacked(without('events.ndjson')), misplaced('resources.ndjson')],
    ['no export record', async () => repacked(without('export.json')), misplaced('versions/0.tfstate.json')],
    [
      'versions in another order',
      async () => repacked(moved('versions/0.tfstate.json', at('versions/10.tfstate.json'))),
      misplaced('versions/2.tfstate.json'),
    ],
    [
      'a version missing in the middle',
      async () => repacked(without('versions/2.tfstate.json')),
      misplaced('versions/10.tfstate.json'),
    ],
    [
      'a version missing at the end',
      async () => repacked(without('versions/9223372036854775806.tfstate.json')),
      misplaced('SHA256SUMS'),
    ],
    [
      'a version the manifest does not know',
      async () => {
        const found = at('versions/10.tfstate.json');
        const surplus = { name: 'versions/7.tfstate.json', data: Buffer.from('{}') };
        return repacked([...members.slice(0, found), surplus, ...members.slice(found)]);
      },
      misplaced('versions/7.tfstate.json'),
    ],
    [
      'resources the manifest counts and the archive lacks',
      async () => repacked(without('resources.ndjson')),
      misplaced('export.json'),
    ],
    [
      'an attestation before the sums',
      async () =>
        repacked([
          ...members.slice(0, 5),
          { name: 'attestation.dsse.json', data: Buffer.from('{}') },
          ...members.slice(5),
        ]),
      misplaced('attestation.dsse.json'),
    ],
  ]);
});

describe('parts that contradict each other are ARCHIVE_INCONSISTENT', () => {
  const manifest = (changes: Changes) => async () => repacked(withJson(members, 'manifest.json', changes));
  const tags = (changes: Changes) => async () => repacked(withJson(members, 'tags.json', changes));
  const firstLine = (name: string, changes: Changes) => async () =>
    repacked(
      withMember(members, name, (data) => {
        const [first = '', ...rest] = String(data).split('\n');
        return [JSON.stringify(changed(first, changes)), ...rest].join('\n');
      }),
    );
  const event = (changes: Changes) => firstLine('events.ndjson', changes);
  const again = (name: string, text: string, replacement: string) => async () =>
    repacked(withMember(members, name, (data) => String(data).replace(text, replacement)));
  const resource = (changes: Changes) => firstLine('resources.ndjson', changes);
  const sums = (change: (lines: string[]) => string[]) => async () =>
    zstd(
      await tarred(
        withMember(summed(members), 'SHA256SUMS', (data) => change(String(data).split('\n')).join('\n')),
      ),
    );

  const inconsistent = (member: string) => (cases: [string, () => Promise<Buffer>, RegExp][]) =>
    refuses(
      cases.map(([what, make, message]) => [
        what,
        make,
        matching({ code: 'ARCHIVE_INCONSISTENT', member, message }),
      ]),
    );

  inconsistent('manifest.json')([
    [
      'a label given twice',
      again('manifest.json', '"label":', '"label": "forged", "label":'),
      /"label" twice/,
    ],
    ['a count of versions', manifest({ 'counts.versions': 5 }), /counts 5 versions, the archive has 4/],
    ['a serial given twice', manifest({ 'versions.1.serial': '0' }), /serial 0 is given to two/],
    ['serials that descend', manifest({ 'versions.0.serial': '3' }), /serial 2 stands behind 3/],
    [
      'a version id given twice',
      manifest({ 'versions.1.id': '00000001-0000-4000-8000-000000000000' }),
      /id of serial 2/,
    ],
    ['a current serial that is not there', manifest({ 'state.current_serial': '11' }), /current serial 11/],
    [
      'a current version id of another version',
      manifest({ 'state.current_version_id': '00000001-0000-4000-8000-000000000000' }),
      /not that of serial 10/,
    ],
    ['no versions at all', manifest({ versions: [], 'counts.versions': 0 }), /current serial/],
    ['a negative serial', manifest({ 'versions.0.serial': '-1' }), /versions\.0\.serial/],
    [
      'a serial above 2^63 - 2',
      manifest({ 'versions.3.serial': '9223372036854775807' }),
      /versions\.3.*2\^63/,
    ],
    ['a serial as a number', manifest({ 'versions.0.serial': 0 }), /versions\.0\.serial.*string/],
    ['a serial with a leading zero', manifest({ 'versions.1.serial': '02' }), /versions\.1\.serial/],
    ['a missing field', manifest({ 'versions.0.created_by': undefined }), /versions\.0\.created_by/],
    ['an empty lineage', manifest({ 'state.lineage': '' }), /state\.lineage/],
    ['an id in capitals', manifest({ 'state.id': 'ABCDEF00-0000-4000-8000-000000000000' }), /state\.id/],
    ['an unknown lifecycle', manifest({ 'state.lifecycle_status': 'deleted' }), /state\.lifecycle_status/],
    ['a NUL in a name', manifest({ 'state.label': 'a\0b' }), /state\.label: has a NUL/],
    ['half a surrogate pair', manifest({ 'versions.0.source': '\ud83d' }), /versions\.0\.source.*surrogate/],
    ['milliseconds only', manifest({ 'state.created_at': '2026-03-02T10:00:00.000Z' }), /created_at/],
    ['an offset for UTC', manifest({ 'state.created_at': '2026-03-02T10:00:00.000000+00:00' }), /created_at/],
    ['a day no year has', manifest({ 'state.created_at': '2026-04-31T10:00:00.000000Z' }), /created_at/],
    ['a day this year lacks', manifest({ 'state.created_at': '2026-02-29T10:00:00.000000Z' }), /created_at/],
    ['a day no century has', manifest({ 'state.created_at': '1900-02-29T10:00:00.000000Z' }), /created_at/],
    ['a month no year has', manifest({ 'state.created_at': '2026-13-01T10:00:00.000000Z' }), /created_at/],
    ['an hour no day has', manifest({ 'state.created_at': '2026-03-02T24:00:00.000000Z' }), /created_at/],
    [
      'a year before the first',
      manifest({ 'state.created_at': '0000-03-02T10:00:00.000000Z' }),
      /created_at/,
    ],
    ['raw states in another text', manifest({ raw_state_text: 'json' }), /raw_state_text/],
    ['raw states in no text', manifest({ raw_state_text: null }), /raw_state_text/],
    ['a window below any of zstd', manifest({ zstd_window_log: 9 }), /zstd_window_log/],
    ['a window above 128 MiB', manifest({ zstd_window_log: 28 }), /zstd_window_log/],
    ['half a bit of window', manifest({ zstd_window_log: 20.5 }), /zstd_window_log/],
  ]);

  inconsistent('tags.json')([
    ['fewer tags counted', manifest({ 'counts.tags': 3 }), /counts 3 tags, the archive has more/],
    ['more tags counted', manifest({ 'counts.tags': 5 }), /counts 5 tags, the archive has 4/],
    [
      'a tag on a serial that is not there',
      tags({ 'tags.0.serial': '3' }),
      /tag "Release" names serial 3, which/,
    ],
    ['a tag given twice', tags({ 'tags.1.tag': 'Release' }), /"Release" is given twice/],
    ['an empty tag', tags({ 'tags.0.tag': '' }), /"" is empty/],
    ['the tag current', tags({ 'tags.0.tag': 'current' }), /reserved/],
    ['a tag that begins with @', tags({ 'tags.0.tag': '@1' }), /begins with @/],
    ['a tag that is a number', tags({ 'tags.0.tag': '0123' }), /is a number/],
    ['a tag of 65 characters', tags({ 'tags.0.tag': '🚀'.repeat(65) }), /longer than 64/],
    ['tags out of order', tags({ 'tags.0.tag': 'z' }), /"release 1\\nwith a newline" stands behind "z"/],
    [
      'a description of more than 1 MiB',
      tags({ 'tags.0.description': 'é'.repeat(2 ** 19 + 1) }),
      /1048576 bytes/,
    ],
    ['a key given twice', again('tags.json', '"tag": "🚀"', '"tag": "🚀", "t\\u0061g": "x"'), /"tag" twice/],
  ]);

  inconsistent('export.json')([
    [
      'a key given twice, deep in a field nobody knows',
      again('export.json', '{', '{"novelty": [{"x": {"deep": 1, "deep": 1}}],'),
      /"deep" twice/,
    ],
  ]);

  inconsistent('events.ndjson')([
    ['fewer events counted', manifest({ 'counts.events': 2 }), /counts 2 events, the archive has more/],
    ['more events counted', manifest({ 'counts.events': 4 }), /counts 4 events, the archive has 3/],
    ['an event on a serial that is not there', event({ serial: '3' }), /linked to serial 3/],
    ['an event given twice', event({ id: '00000002-0000-4000-8000-000000000001' }), /given twice/],
    ['a payload that is no JSON', event({ payload: '{' }), /payload: is not JSON/],
    ['a payload that is no text', event({ payload: {} }), /payload/],
    [
      'a payload with a NUL, and says in which line and event',
      event({ payload: '{"a": ["\\u0000"]}' }),
      /^events\.ndjson line 1 \(00000002-0000-4000-8000-000000000000\): payload: holds \\u0000/,
    ],
    ['a payload with a NUL in a key', event({ payload: '{"\\u0000": 1}' }), /\\u0000/],
    ['a payload with half a surrogate pair', event({ payload: '["\\ud83d"]' }), /surrogate/],
    ['a payload nested without end', event({ payload: '['.repeat(9999) + ']'.repeat(9999) }), /4000 deep/],
    ['a payload that unfolds', event({ payload: `[${'1e131000,'.repeat(40)}0]` }), /4194304 bytes/],
    ['a payload of a number no numeric holds', event({ payload: '1e131072' }), /more digits/],
    ['a payload of a fraction no numeric holds', event({ payload: '1e-16384' }), /more digits/],
    ['a payload without room for the mark of a restore', event({ payload: longest(0) }), /4194304 bytes/],
    ['a kind no index holds', event({ kind: 'k'.repeat(256) }), /kind: has more than 255 bytes/],
    ['a kind with a control character', event({ kind: 'state_write\u001b[2K' }), /kind: has a control/],
    ['no kind', event({ kind: '' }), /kind: is empty/],
    ...[
      'lock_acquire',
      'state_export',
      'state_archive_download',
      'state_support_access',
      'rbac_grant_create',
      'tenant_lifecycle_update',
      'environment_transfer_accepted',
      'api_token_deleted',
      'portal_pat_grant_enable',
    ].map((kind): [string, () => Promise<Buffer>, RegExp] => [
      `an event of the kind ${kind}, which is never a state's`,
      event({ kind }),
      /is in no archive/,
    ]),
    [
      'a key given twice',
      again('events.ndjson', '"actor":', '"actor":"forged","actor":'),
      /line 1 .*"actor" twice/,
    ],
  ]);

  inconsistent('resources.ndjson')([
    ['fewer spans counted', manifest({ 'counts.resources': 1 }), /counts 1 resources, the archive has more/],
    ['more spans counted', manifest({ 'counts.resources': 3 }), /counts 3 resources, the archive has 2/],
    ['a span that ends where it begins', resource({ delete_serial: '2' }), /from serial 2 ends at serial 2/],
    ['a span that ends before it begins', resource({ delete_serial: '1' }), /from serial 2 ends at serial 1/],
    ...['', 'ZZ', '0'.repeat(63), 'A'.repeat(64), '0'.repeat(100_000)].map(
      (hash): [string, () => Promise<Buffer>, RegExp] => [
        `the hash ${JSON.stringify(hash.slice(0, 70))}`,
        resource({ attributes_hash: hash }),
        /^resources\.ndjson line 1: attributes_hash: is not 64 lower-case/,
      ],
    ),
    ['a schema version beyond 32 bits', resource({ schema_version: 2 ** 31 }), /schema_version/],
  ]);

  const attested = (text: string) => async () =>
    repacked([...members, { name: 'attestation.dsse.json', data: Buffer.from(text) }]);
  inconsistent('attestation.dsse.json')([
    ['an attestation that is an empty object', attested('{}'), /payloadType/],
    [
      'an attestation nobody signed',
      attested('{"payloadType":"t","payload":"e30=","signatures":[]}'),
      /signature/,
    ],
  ]);

  inconsistent('SHA256SUMS')([
    ['sums that leave out a member', sums((lines) => lines.slice(1)), /line 1 .* manifest\.json/],
    ['sums that end too early', sums((lines) => [...lines.slice(0, -2), '']), /does not list versions\/92/],
    [
      'sums that go on',
      sums((lines) => [...lines.slice(0, -1), `${'0'.repeat(64)}  more`, '']),
      /any member/,
    ],
  ]);

  it.each([
    ['nested as deep as may be', `{"a": ${'['.repeat(3999)}${']'.repeat(3999)}}`],
    ['of the longest numbers', `{"a": [${'9'.repeat(131_072)}, -0.${'1'.repeat(16_383)}]}`],
    ['as long as may be', longest(128)],
    ['that is no object', '"text"'],
    ['that is null', 'null'],
  ])('accepts a payload %s', async (_, payload) => {
    await expect(verdict(await event({ payload })())).resolves.toBeDefined();
  });

  it('accepts an event of a kind that a later Kilolock may write', async () => {
    await expect(verdict(await event({ kind: 'state_renamed' })())).resolves.toBeDefined();
  });

  it('tells nothing of the values it refuses', async () => {
    const bad = await manifest({ 'versions.0.created_at': 'hunter2' })();
    const error = await verdict(bad).catch((refusal: unknown) => refusal);
    expect(String(error)).toContain('versions.0.created_at');
    expect(String(error)).not.toContain('hunter2');
  });

  it('accepts a tag of 64 characters beyond the basic plane, as PostgreSQL counts them', async () => {
    await expect(verdict(await tags({ 'tags.3.tag': '🚀'.repeat(64) })())).resolves.toBeDefined();
  });

  it('accepts a tag of digits and a newline, as PostgreSQL does', async () => {
    await expect(verdict(await tags({ 'tags.0.tag': '12\n' })())).resolves.toBeDefined();
  });

  it('accepts the twenty-ninth of February in a leap year', async () => {
    const leap = manifest({ 'state.created_at': '2000-02-29T23:59:59.999999Z' });
    await expect(verdict(await leap())).resolves.toBeDefined();
  });
});

describe('changed bytes are ARCHIVE_CORRUPT', () => {
  const corrupt = (member: string | null) => ({ code: 'ARCHIVE_CORRUPT', member });
  const altered = (name: string, change: (data: Buffer) => string | Uint8Array) => async () =>
    zstd(await tarred(withMember(members, name, change)));
  const flipped = (data: Buffer) => data.map((byte, index) => (index === data.length >> 1 ? byte ^ 1 : byte));
  refuses([
    [
      'a flipped byte in a version, which is named',
      altered('versions/2.tfstate.json', flipped),
      corrupt('versions/2.tfstate.json'),
    ],
    [
      'a version that grew',
      altered('versions/2.tfstate.json', (d) => `${d} `),
      corrupt('versions/2.tfstate.json'),
    ],
    ['an export record that is another', altered('export.json', (d) => `${d} `), corrupt('export.json')],
    [
      'a digest that was changed',
      altered('SHA256SUMS', (d) => String(d).replace(/^./, (c) => (c === '0' ? '1' : '0'))),
      corrupt('manifest.json'),
    ],
    ['sums that are no sums', altered('SHA256SUMS', () => 'hello\n'), corrupt('SHA256SUMS')],
    [
      'sums without their last newline',
      altered('SHA256SUMS', (d) => d.subarray(0, -1)),
      corrupt('SHA256SUMS'),
    ],
    [
      'an attestation that is empty',
      async () => repacked([...members, { name: 'attestation.dsse.json', data: Buffer.alloc(0) }]),
      corrupt('attestation.dsse.json'),
    ],
    [
      'an attestation that is no JSON',
      async () => repacked([...members, { name: 'attestation.dsse.json', data: Buffer.from('x') }]),
      corrupt('attestation.dsse.json'),
    ],
    ['a manifest that is not JSON', altered('manifest.json', () => '{'), corrupt('manifest.json')],
    [
      'a manifest that is not UTF-8',
      altered('manifest.json', (d) => Buffer.concat([d, Buffer.of(0xff)])),
      corrupt('manifest.json'),
    ],
    ['a byte order mark', altered('manifest.json', (d) => `\ufeff${d}`), corrupt('manifest.json')],
    [
      'JSON nested without end',
      altered('manifest.json', () => '['.repeat(100_000)),
      corrupt('manifest.json'),
    ],
    [
      'a last event without its newline',
      altered('events.ndjson', (d) => d.subarray(0, -1)),
      corrupt('events.ndjson'),
    ],
    ['an empty line among the events', altered('events.ndjson', (d) => `\n${d}`), corrupt('events.ndjson')],
    ['a tar header of another checksum', () => zstd(bytesAt(tarOf(archive), 0, 'n')), corrupt(null)],
    [
      'padding that is not zero',
      () => zstd(bytesAt(tarOf(archive), endOf('manifest.json'), 'x')),
      corrupt('manifest.json'),
    ],
    [
      'data after the end of the tar',
      () => zstd(Buffer.concat([tarOf(archive), Buffer.alloc(512, 'x')])),
      corrupt(null),
    ],
    [
      'a single zero byte after the end of the tar',
      () => zstd(Buffer.concat([tarOf(archive), Buffer.alloc(1)])),
      corrupt(null),
    ],
    [
      'members between the two blocks of the end',
      () => zstd(bytesAt(tarOf(archive), -512, 'x')),
      corrupt(null),
    ],
    ['a byte after the frame', () => Buffer.concat([archive, Buffer.of(0)]), corrupt(null)],
    ['text after the frame', () => Buffer.concat([archive, Buffer.from('and more')]), corrupt(null)],
    ['a second frame', () => Buffer.concat([archive, archive]), corrupt(null)],
    [
      'an empty second frame',
      () => Buffer.concat([archive, zstdCompressSync(Buffer.alloc(0))]),
      corrupt(null),
    ],
    ['a skippable frame behind', () => Buffer.concat([archive, skippable()]), corrupt(null)],
    ['a skippable frame before', () => Buffer.concat([skippable(), archive]), corrupt(null)],
    [
      'a bare tar with data behind it',
      () => Buffer.concat([tarOf(archive), Buffer.from('x')]),
      corrupt(null),
    ],
    [
      'a second gzip member',
      () => Buffer.concat([gzip(tarOf(archive)), gzip(tarOf(archive))]),
      corrupt(null),
    ],
    [
      'bytes after the gzip member',
      () => Buffer.concat([gzip(tarOf(archive)), Buffer.alloc(20_000)]),
      corrupt(null),
    ],
    [
      'one byte after the gzip member',
      () => Buffer.concat([gzip(tarOf(archive)), Buffer.of(0)]),
      corrupt(null),
    ],
    ['a gzip member of another checksum', () => bytesAt(gzip(tarOf(archive)), -6, 'x'), corrupt(null)],
  ]);

  it('notices a second frame that begins exactly where a chunk does', async () => {
    const file = Buffer.concat([archive, zstdCompressSync(Buffer.alloc(0))]);
    await expect(verdict(file, {}, archive.length)).rejects.toMatchObject({ code: 'ARCHIVE_CORRUPT' });
  });

  it('notices a second gzip member that begins exactly where a chunk does', async () => {
    const first = gzip(tarOf(archive));
    await expect(verdict(Buffer.concat([first, first]), {}, first.length)).rejects.toMatchObject({
      code: 'ARCHIVE_CORRUPT',
    });
  });
});

describe('what is beyond a limit is ARCHIVE_TOO_LARGE', () => {
  const cases: [what: string, limits: Partial<ArchiveLimits>, member: string | null][] = [
    ['the file', { maxArchiveBytes: 500n }, null],
    ['the tar', { maxTotalBytes: 10_000n }, null],
    ['a version', { maxVersionBytes: 2000 }, 'versions/9223372036854775806.tfstate.json'],
    ['a metadata member', { maxMetadataBytes: 1000 }, 'manifest.json'],
    ['a line', { maxRecordBytes: 150 }, 'events.ndjson'],
    ['versions', { maxVersions: 3 }, 'manifest.json'],
    ['events', { maxEvents: 2 }, 'manifest.json'],
  ];
  it.each(cases)('%s', async (_, limits, member) => {
    await expect(verdict(archive, limits)).rejects.toMatchObject({ code: 'ARCHIVE_TOO_LARGE', member });
  });

  it('a version of 1 GiB, at its header: not a byte of it is read', async () => {
    const name = 'versions/2.tfstate.json';
    const header = patched(name, (block) => block.write('10000000000', 124)).subarray(
      0,
      headerOf(name) + 512,
    );
    await expect(verdict(header)).rejects.toMatchObject({
      code: 'ARCHIVE_TOO_LARGE',
      member: name,
      message: expect.stringContaining('268435455'),
    });
  });

  it('what follows a bad manifest: no more of it is unpacked than it takes to tell damage from a lie', async () => {
    let unpacked = 0;
    async function* endless() {
      const bad = patched('manifest.json', (block) => block.write('x', 500));
      yield bad;
      for (let piece = 0; piece < 1024; piece++) {
        unpacked += 1 << 20;
        yield Buffer.alloc(1 << 20);
      }
    }
    await expect(readArchive(endless()).next()).rejects.toMatchObject({ code: 'ARCHIVE_UNSAFE' });
    expect(unpacked).toBeLessThan(100 << 20);
  });

  it('a bomb, of which no more is unpacked than the limits allow', async () => {
    const bomb = zstd(Buffer.concat([tarOf(archive).subarray(0, -1024), Buffer.alloc(64 << 20)]));
    await expect(verdict(bomb, { maxExpansionRatio: 1000 })).rejects.toMatchObject({
      code: 'ARCHIVE_TOO_LARGE',
    });
  });

  it('a manifest that is small as text and large as objects', async () => {
    const crowded = withMember(members, 'manifest.json', () => `[${'{},'.repeat(5000)}{}]`);
    await expect(verdict(await repacked(crowded), { maxVersions: 10 })).rejects.toMatchObject({
      code: 'ARCHIVE_TOO_LARGE',
      member: 'manifest.json',
    });
  });

  it('a frame with a window above 128 MiB', async () => {
    await expect(verdict(frameWith({ window: 0x90 }))).rejects.toMatchObject({ code: 'ARCHIVE_TOO_LARGE' });
  });

  it('an attestation', async () => {
    const large = [...members, { name: 'attestation.dsse.json', data: Buffer.alloc(65_537) }];
    await expect(verdict(await repacked(large))).rejects.toMatchObject({
      code: 'ARCHIVE_TOO_LARGE',
      member: 'attestation.dsse.json',
    });
  });

  it('but versions that are all alike are no bomb', async () => {
    const rawState = JSON.stringify({
      resources: Array.from({ length: 3000 }, (_, i) => ({ id: `r-${i * 7919}` })),
    });
    const versions = Array.from({ length: 600 }, (_, i) => ({ serial: BigInt(i + 1), rawState }));
    const written = await buildArchive({ versions }, path('alike.klstate'));
    expect(Number(written.rawBytes) / Number(written.sizeBytes)).toBeGreaterThan(700);
    expect(DEFAULT_ARCHIVE_LIMITS.maxExpansionRatio).toBeGreaterThan(700);
  });
});

describe('what a later v1 may add', () => {
  it('is tolerated in the metadata, and counted', async () => {
    const later = withJson(
      withJson(members, 'manifest.json', {
        novelty: 1,
        'state.novelty': 2,
        'versions.0.novelty': 3,
        'versions.3.n': 4,
      }),
      'tags.json',
      { 'tags.0.novelty': true },
    );
    const { warnings, historyDigest } = await verdict(await repacked(later));
    const message = expect.stringMatching(/[^.]\.$/);
    expect(warnings).toEqual([
      expect.objectContaining({ code: 'UNKNOWN_FIELDS', member: 'manifest.json', count: 4, message }),
      expect.objectContaining({ code: 'UNKNOWN_FIELDS', member: 'tags.json', count: 1, message }),
    ]);
    expect(historyDigest).toBe((await verdict(archive)).historyDigest);
  });

  it('is an attestation of another kind behind the sums, which is told with a warning', async () => {
    const envelope = '{"payloadType": "t", "payload": "e30=", "signatures": [{"sig": "AA=="}], "novelty": 1}';
    const signed = [...members, { name: 'attestation.dsse.json', data: Buffer.from(envelope) }];
    const { signature, warnings } = await verdict(await repacked(signed));
    expect(signature).toEqual({ verified: false, keyIds: ['a key without a name'] });
    expect(warnings).toEqual([expect.objectContaining({ code: 'ATTESTATION_NOT_VERIFIED' })]);
  });
});

/** An object as jsonb prints it, so many bytes short of the most a payload may have. */
function longest(short: number): string {
  return `{"a": "${'x'.repeat(4 * 1024 * 1024 - short - 9)}"}`;
}

/** A refusal whose message matches. */
function matching(refusal: { code: string; member?: string; message: RegExp }): object {
  return { ...refusal, message: expect.stringMatching(refusal.message) };
}

/** A copy of the bytes with text written at an offset; a negative one counts from the end. */
function bytesAt(bytes: Uint8Array, offset: number, text: string): Buffer {
  const copy = Buffer.from(bytes);
  copy.write(text, offset < 0 ? copy.length + offset : offset);
  return copy;
}

/** Where a member's header stands in the tar. */
function headerOf(name: string): number {
  return tarOf(archive).indexOf(`${name}\0`);
}

/** The first byte behind a member's content. */
function endOf(name: string): number {
  return headerOf(name) + 512 + (members.find((member) => member.name === name)?.data.length ?? 0);
}

/** The tar with one header changed, its checksum made to agree. */
function patched(name: string, change: (header: Buffer) => unknown): Buffer {
  const tar = tarOf(archive);
  const header = tar.subarray(headerOf(name), headerOf(name) + 512);
  change(header);
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return tar;
}

function retyped(name: string, type: string): Buffer {
  return patched(name, (header) => header.write(type, 156));
}

/** The archive with another descriptor or window in its frame header (RFC 8878, 3.1.1.1). */
function frameWith({ descriptor = 0b100, window }: { descriptor?: number; window?: number }): Buffer {
  const header = Buffer.of(descriptor, window ?? archive[5] ?? 0);
  return Buffer.concat([archive.subarray(0, 4), header, archive.subarray(6)]);
}

/** RFC 8878, 3.1.2: bytes that every decoder skips. */
function skippable(): Buffer {
  return Buffer.from([0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4]);
}
