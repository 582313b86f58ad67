import type { KilolockDatabase } from '../../../src/database/connection.ts';
import { DigestBudget } from '../../../src/history/digest-budget.ts';
import { digestHistory, readDigestedHistories } from '../../../src/history/history.ts';
import type { SampleHistory } from '../../archive/support/build-archive.ts';

/** The digest of a state's history as its rows have it, whatever the state's lifecycle. */
export async function historyDigestOf(database: KilolockDatabase, stateId: string): Promise<string> {
  const history = (await readDigestedHistories(database, [stateId], new DigestBudget())).get(stateId);
  if (history === undefined) throw new Error(`There is no state ${stateId}.`);
  return digestHistory(history).historyDigest;
}

/** The attributes of one instance by the name of its resource `thing.NAME`; schema version 1. */
export type Things = Readonly<Record<string, string>>;

/** A state document as jsonb prints it, with a managed resource `thing.NAME` for each of `things`. */
export function thingsDocument(serial: bigint, things: Things, lineage = SMALL_LINEAGE): string {
  const resources = Object.entries(things).map(
    ([name, attributes]) =>
      `{"mode": "managed", "name": "${name}", "type": "thing", "provider": "p", "instances": [{"attributes": ${attributes}, "schema_version": 1}]}`,
  );
  return `{"serial": ${serial}, "lineage": "${lineage}", "outputs": {"count": {"type": "number", "value": ${resources.length}}}, "version": 4, "resources": [${resources.join(', ')}], "terraform_version": "1.9.8"}`;
}

export const SMALL_LINEAGE = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10';

/** Three versions, the last of serial 5, of a state "team/app", with a tag, two events and three resource spans. */
export const smallHistory: SampleHistory = {
  versions: [
    { serial: 1n, rawState: thingsDocument(1n, { a: '{"id": "a-1"}' }) },
    { serial: 2n, rawState: thingsDocument(2n, { a: '{"id": "a-1"}', b: '{"id": "b-1"}' }), source: 'apply' },
    { serial: 5n, rawState: thingsDocument(5n, { a: '{"id": "a-2"}', b: '{"id": "b-1"}' }), createdBy: null },
  ],
  tags: [{ tag: 'release', serial: 2n }],
  events: [
    { kind: 'state_write', serial: 1n, payload: '{"serial": 1, "source": "http_backend"}' },
    { kind: 'tag.set', actor: null, payload: '{"tag": "release"}' },
  ],
  resources: [
    { address: 'thing.a', createSerial: 1n, deleteSerial: 5n, schemaVersion: 1 },
    { address: 'thing.b', createSerial: 2n, schemaVersion: 1 },
    { address: 'thing.a', createSerial: 5n, schemaVersion: 1 },
  ],
};
