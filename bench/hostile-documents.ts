import { join } from 'node:path';
import { buildArchive } from '../test/archive/support/build-archive.ts';
import { SeededRandom } from './history/seeded-random.ts';

/** A state document that costs its reader far more than its archive's size tells. */
export interface HostileDocument {
  readonly title: string;
  /** Its resources, as JSON text. */
  resources(): string;
}

const MILLION = 1_000_000;

/** The documents; `share` from 0 to 1 makes smaller ones of them. */
export function hostileDocuments(share: number): HostileDocument[] {
  const few = (count: number) => Math.round(count * share);
  return [
    {
      title: `a list of ${few(1000)} thousand numbers, 490 deep`,
      resources: () => oneInstance(nestedList(few(MILLION))),
    },
    {
      title: `a list of ${few(20)} million numbers, 490 deep`,
      resources: () => oneInstance(nestedList(few(20 * MILLION))),
    },
    {
      // With its resource, as many entries as there may be.
      title: `${few(1000)} thousand instances`,
      resources: () =>
        resource(
          Array.from({ length: few(MILLION) - 1 }, (_, index) => instance(index, `"i-${index}"`)).join(', '),
        ),
    },
    {
      title: `a string of ${few(256)} MB`,
      resources: () => oneInstance(`"${manyCharacters(few(256 * MILLION))}"`),
    },
  ];
}

function nestedList(numbers: number): string {
  return `${'['.repeat(490)}${'0, '.repeat(numbers)}0${']'.repeat(490)}`;
}

/** Writes an archive of one version that holds the document. */
export async function writeHostileArchive(document: HostileDocument, directory: string): Promise<string> {
  const path = join(directory, 'hostile.klstate');
  const rawState = `{"serial": 1, "lineage": "7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10", "outputs": {}, "version": 4, "resources": [${document.resources()}], "terraform_version": "1.11.4"}`;
  await buildArchive({ versions: [{ serial: 1n, rawState }], resources: null }, path);
  return path;
}

/** Not all the same, or the archive would be refused for what it unpacks to. */
function manyCharacters(count: number): string {
  const random = new SeededRandom('a long string');
  const length = 1000;
  const pieces = Array.from({ length: count / length }, () => random.hex(8).padEnd(length, 'x'));
  return pieces.join('');
}

function oneInstance(value: string): string {
  return resource(instance(0, value));
}

function resource(instances: string): string {
  return `{"mode": "managed", "name": "odd", "type": "thing", "provider": "provider[\\"example.com/odd/thing\\"]", "instances": [${instances}]}`;
}

function instance(index: number, value: string): string {
  return `{"index_key": ${index}, "attributes": {"value": ${value}}, "schema_version": 0}`;
}
