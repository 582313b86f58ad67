import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { insertHistory } from '../../bench/history/insert.ts';
import { historyRows } from '../../bench/history/rows.ts';
import type { HistoryShape } from '../../bench/history/shape.ts';
import { startTestService, type TestService } from '../support/service.ts';

const FEW: HistoryShape = {
  name: 'few',
  versions: 11,
  resources: 12,
  instances: 1,
  contents: 'whole',
  changes: 'few',
};
const EVERYTHING: HistoryShape = {
  name: 'everything',
  versions: 3,
  resources: 2,
  instances: 5,
  contents: 'id',
  changes: 'everything',
};

interface Changes {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

/** A service whose database holds one generated history. */
async function serve(shape: HistoryShape): Promise<TestService> {
  const service = await startTestService();
  const client = await service.database.pool.connect();
  try {
    await insertHistory(client, shape);
  } finally {
    client.release();
  }
  return service;
}

/** What each version changed, by serial. */
async function changesOf(service: TestService, { name }: HistoryShape): Promise<Map<number, Changes>> {
  const { data } = await service.ask<{
    stateArchive: { versions: { nodes: { serial: string; changes: Changes }[] } };
  }>(
    'query ($name: String!) { stateArchive(name: $name) { versions(first: 20) { nodes { serial changes { added changed removed } } } } }',
    { variables: { name } },
  );
  return new Map(data.stateArchive.versions.nodes.map(({ serial, changes }) => [Number(serial), changes]));
}

describe('a generated history of few changes', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await serve(FEW);
  });
  afterAll(() => service.stop());

  test('changes three instances a version, and one resource comes or goes now and then', async () => {
    const changes = await changesOf(service, FEW);
    expect(changes.get(1)).toEqual({ added: 12, changed: 0, removed: 0 });
    for (let serial = 2; serial <= FEW.versions; serial += 1) {
      const expected = { added: serial === 10 ? 1 : 0, changed: 3, removed: serial === 5 ? 1 : 0 };
      expect({ serial, ...changes.get(serial) }).toEqual({ serial, ...expected });
    }
  });

  test('is one that Terraform could have left: it goes out and comes back without a warning', async () => {
    const exported = await service.ask<{
      exportStateArchive: { operation: { archive: { downloadUrl: string; historyDigest: string } } };
    }>(
      `mutation { exportStateArchive(input: { name: "${FEW.name}" }) { operation { archive { downloadUrl historyDigest } } } }`,
    );
    const { downloadUrl, historyDigest } = exported.data.exportStateArchive.operation.archive;
    const bytes = new Uint8Array(await (await fetch(downloadUrl)).arrayBuffer());
    const imported = await service.ask(
      'mutation ($file: Upload!) { importStateArchive(input: { file: $file, name: "again", allowSharedLineage: true }) { operation { report { historyDigest resourceSpansDerived warnings { code message } } } } }',
      { file: { bytes } },
    );
    expect(imported.data).toEqual({
      importStateArchive: {
        operation: { report: { historyDigest, resourceSpansDerived: false, warnings: [] } },
      },
    });
  });
});

test('a generated history in which everything changes keeps no instance as it was', async () => {
  const service = await serve(EVERYTHING);
  const changes = await changesOf(service, EVERYTHING);
  await service.stop();
  expect(changes.get(1)).toEqual({ added: 10, changed: 0, removed: 0 });
  expect(changes.get(2)).toEqual({ added: 0, changed: 10, removed: 0 });
  expect(changes.get(3)).toEqual({ added: 0, changed: 10, removed: 0 });
});

test('a history is made the same each time', () => {
  const written = () => historyRows(FEW).map(({ table, text }) => [table, [...text].join('')]);
  expect(written()).toEqual(written());
});
