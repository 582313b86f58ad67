import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Caller } from '../../src/history/states.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { annotate, post } from '../operations/support/histories.ts';
import { thingsDocument } from './support/histories.ts';
import { writePlainTar } from './support/plain-tar.ts';

let source: { backend: Backend; caller: Caller };
let destination: { backend: Backend; caller: Caller };
beforeAll(async () => {
  const open = async () => {
    const backend = await openBackend();
    return { backend, caller: await createCaller(backend) };
  };
  [source, destination] = await Promise.all([open(), open()]);
});
afterAll(() => Promise.all([source, destination].map(({ backend }) => backend.close())));

const inDirectory = temporaryDirectory();

const MIB = 1024 * 1024;

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((characters) => characters.replaceAll('\0', '')),
  fc.constantFrom('', 'new\nline', '\u001b[2K', '\u202e', 'é'.repeat(MIB / 2), 'x'.repeat(MIB + 1)),
);

const time = fc.constantFrom(
  '0001-01-01 00:00:00+00',
  '9999-12-31 23:59:59.999999+00',
  '2026-06-30 23:59:60+00',
  '0044-03-15 12:00:00+00 BC',
  '10000-01-01 00:00:00+00',
  'infinity',
  '-infinity',
);

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

const payload = fc.oneof(
  fc.json({ maxDepth: 3 }).filter((json) => !/\\u(?:0000|d[89a-f])/i.test(json)),
  fc.constantFrom(
    'null',
    '"text"',
    '[1, 2.50]',
    nested(3000),
    nested(4000),
    `{"a": ${nested(3999)}}`,
    `{"a": ${nested(4000)}}`,
    '{"restored_by_import": 1, "replayed_from_version": 7}',
    `{"n": [1e131071, -1e-16383]}`,
    `{"n": [${'1e131000, '.repeat(31)}0]}`,
    `{"n": [${'1e131000, '.repeat(33)}0]}`,
    ...[-200, -129, -128, 0, 1].map((more) => `{"a": "${'x'.repeat(4 * MIB + more - 9)}"}`),
  ),
);

const instances = (...members: string[]) =>
  `{"version": 4, "resources": [{"mode": "managed", "type": "t", "name": "n", "provider": "p", "instances": [${members.join(', ')}]}]}`;

/** Documents that nobody writes through Kilolock; some that it could not read. */
const rawState = fc.constantFrom(
  '[]',
  '{"serial": 5}',
  '{"version": 3}',
  '{"version": 4, "serial": -5, "lineage": null, "outputs": null, "resources": null}',
  '{"version": 4, "OUTPUTS": {"a": {"VALUE": 1.50, "Sensitive": true}}, "outputs": {"b": null}}',
  '{"version": 4, "resources": [{"mode": "neither"}, null]}',
  instances('{"index_\u212aey": 5, "\u017ftatus": "x"}'),
  instances('{"index_\u212aey": 5.5}'),
  instances('{"index_key": 0}', '{"index_key": "0"}', '{"index_key": "-0"}', 'null'),
  instances('{"dependencies": ["<a>", null, "\u2028"]}'),
  instances(`{"attributes": ${nested(5000)}}`),
  instances(`{"attributes": {"n": ${'9'.repeat(131_072)}, "z": -0, "s": 0.${'0'.repeat(16_383)}}}`),
);

/** Columns of a state's rows, with values that a database holds and an archive holds, or does not. */
const COLUMNS = {
  'states.created_at': time,
  'states.updated_at': time,
  'state_versions.created_at': time,
  'state_versions.created_by': text,
  'state_versions.raw_state': rawState,
  'state_versions.source': text,
  'state_versions.terraform_version': text,
  'state_version_tags.created_at': time,
  'state_version_tags.updated_at': time,
  'state_version_tags.actor': text,
  'state_version_tags.description': text,
  'events.created_at': time,
  'events.actor': text,
  'events.kind': fc.constantFrom(
    'a_later_kind',
    'lock_acquire',
    'rbac_grant_create',
    '',
    'a\nb',
    'k'.repeat(256),
  ),
  'events.payload': payload,
  'resources.created_at': time,
  'resources.attributes_hash': fc.constantFrom('0'.repeat(64), 'h', ''),
} satisfies Readonly<Record<string, fc.Arbitrary<string>>>;

const oddRow = fc.oneof(
  ...Object.entries(COLUMNS).map(([column, value]) => fc.tuple(fc.constant(column), value)),
);

let made = 0;

/** A state of seven versions with tags and events, each with what people leave on it. */
async function makeState(label: string): Promise<string> {
  const { backend, caller } = source;
  const { stateId } = await post(backend.database, caller, label, thingsDocument(1n, { a: '{"id": "a"}' }));
  for (const serial of [2n, 3n, 4n, 5n, 6n, 7n]) {
    await post(backend.database, caller, label, thingsDocument(serial, { a: `{"id": "a-${serial}"}` }));
  }
  await annotate(backend.database, stateId);
  return stateId;
}

test('a row that a database holds leaves and comes back as it was, or the export refuses it by its code', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(oddRow, { minLength: 1, maxLength: 2 }), async (odd) => {
      const label = `odd-${made++}`;
      const stateId = await makeState(label);
      for (const [place, value] of odd) {
        const [table = '', column = ''] = place.split('.');
        await source.backend.database.pool.query(
          `update ${table} set ${column} = $2 where id = (
             select id from ${table} where ${table === 'states' ? 'id' : 'state_id'} = $1 order by id limit 1)`,
          [stateId, value],
        );
      }
      const exported = await runExport(source.backend, source.caller, label);
      if (exported.status !== 'SUCCEEDED') {
        expect(exported.error).toMatchObject({
          code: 'HISTORY_INCONSISTENT',
          message: expect.stringMatching(/state|serial|Tag|[Ee]vent|resource row/),
        });
        return;
      }
      const path = inDirectory('odd.klstate');
      await writePlainTar(archivePath(source.backend, exported), path);
      const input = { label, allowSharedLineage: true };
      const { backend, caller } = destination;
      const dryRun = await runImport(backend, caller, path, { ...input, dryRun: true });
      expect(dryRun.error).toBeNull();
      const restored = await runImport(backend, caller, path, input);
      expect(restored.error).toBeNull();
      const { rows } = await backend.database.pool.query(
        `select count(*)::int as unmarked from events
         where state_id = $1 and kind <> 'state_import' and payload ->> 'restored_by_import' is distinct from $2`,
        [stateIdOf(restored), restored.id],
      );
      expect(rows).toEqual([{ unmarked: 0 }]);
      const again = await runExport(backend, caller, label);
      expect(again.error).toBeNull();
      expect(again.archive?.historyDigest).toBe(exported.archive?.historyDigest);
    }),
    { numRuns: 15, interruptAfterTimeLimit: 40_000 },
  );
});
