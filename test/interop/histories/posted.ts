import type { Answer } from '../http.ts';
import type { Kld } from '../kilolock.ts';

/** A name with all that a path, a pattern or a quoted text could trip over. */
export const ODD_NAME = "team é/it's 100%_x";

/** A state that begins with Kilolock's genesis, has gaps in its serials, authors of every kind, and drift. */
export async function writeOddHistory(kld: Kld): Promise<Answer[]> {
  const write = (path: string, body: unknown) => kld.administer(ODD_NAME, 'POST', path, body);
  const document = (serial: number, instances: Readonly<Record<string, string>>) =>
    JSON.stringify({
      version: 4,
      terraform_version: '1.9.0',
      serial,
      lineage: 'c0ffee00-0000-4000-8000-000000000001',
      outputs: {},
      check_results: null,
      resources: [
        {
          mode: 'managed',
          type: 'terraform_data',
          name: 'r',
          provider: 'provider["terraform.io/builtin/terraform"]',
          instances: Object.entries(instances).map(([key, id]) => ({
            index_key: key,
            schema_version: 0,
            attributes: { id, n: 1.5 },
          })),
        },
      ],
    }).replaceAll('"n":1.5', '"n":1.50');
  return [
    await kld.administer(ODD_NAME, 'GET', 'state/current?ensure_genesis=true'),
    await write('state/write-apply', {
      raw_state: document(5, { a: 'x', b: 'y' }),
      base_serial: 0,
      actor: '',
    }),
    await write('state/write-apply', {
      raw_state: document(9, { a: 'x', b: 'z' }),
      base_serial: 5,
      source: 'odd source',
      actor: 'é',
    }),
    await write('state/import', {
      name: ODD_NAME,
      raw_state: document(0, { a: 'drift', b: 'z' }),
      source: 'refresh',
      actor: 'drifter',
    }),
    await write('state/tags/set', { tag: 'd', version_ref: '9', description: '', actor: '' }),
  ];
}

/** A state whose current version is not the one of the highest serial; its resource rows contradict themselves. */
export const LOW_POINTER = 'low-pointer';

export async function writeLowPointerHistory(kld: Kld): Promise<Answer[]> {
  const document = (serial: number, resources: Readonly<Record<string, string>>) =>
    JSON.stringify({
      version: 4,
      terraform_version: '1.9.0',
      serial,
      lineage: 'c0ffee00-0000-4000-8000-000000000002',
      outputs: { o: { value: serial, type: 'number' } },
      resources: Object.entries(resources).map(([name, id]) => ({
        mode: 'managed',
        type: 't',
        name,
        provider: 'provider["x/y/z"]',
        instances: [{ schema_version: 3, attributes: { id } }],
      })),
    });
  const write = (path: string, body: unknown) => kld.administer(LOW_POINTER, 'POST', path, body);
  return [
    await write('state/import', {
      name: LOW_POINTER,
      raw_state: document(1, { a: '1' }),
      source: 'import',
      actor: 'x',
    }),
    await write('state/write-apply', { raw_state: document(10, { a: '1', b: '1' }), base_serial: 1 }),
    await write('state/write-apply', { raw_state: document(7, { a: '1', b: '1', c: '1' }), base_serial: 10 }),
  ];
}
