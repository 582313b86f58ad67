import { present } from '../../src/base/invariant.ts';
import { type Instance, newInstance, newResource, type Resource } from './resource.ts';
import { SeededRandom } from './seeded-random.ts';
import type { HistoryShape } from './shape.ts';

/** A resource instance from the version that brought it to the one in which it is no longer so. */
export interface Span {
  readonly resource: Resource;
  readonly instance: Instance;
  /** Null while it lasts. */
  readonly deleteSerial: number | null;
}

/** One version of a history. */
export interface Version {
  readonly serial: number;
  /** What its document holds, in order; valid until the next version is asked for. */
  readonly resources: readonly Resource[];
  /** What the version ended. */
  readonly ended: readonly Span[];
}

const CHANGED = 3;
/** Every so many versions one resource is added, and half way between one is removed. */
const COMING_AND_GOING = 10;

/** The versions of a history, in order; the same each time. */
export function* walkHistory(shape: HistoryShape): Generator<Version, void, void> {
  const random = new SeededRandom(JSON.stringify(shape));
  const resources: Resource[] = [];
  let made = 0;
  const add = (position: number, serial: number) => {
    const resource = newResource(made);
    made += 1;
    for (let index = 0; index < shape.instances; index += 1) {
      const key = shape.instances === 1 ? null : index;
      resource.instances.push(newInstance(resource, key, serial, shape, random));
    }
    resources.splice(position, 0, resource);
  };
  const change = (resource: Resource, position: number, serial: number): Span => {
    const instance = present(resource.instances[position], 'it is below the length');
    resource.instances[position] = newInstance(resource, instance.index, serial, shape, random);
    return { resource, instance, deleteSerial: serial };
  };

  while (made < shape.resources) add(made, 1);
  yield { serial: 1, resources, ended: [] };
  for (let serial = 2; serial <= shape.versions; serial += 1) {
    const ended: Span[] = [];
    if (shape.changes === 'everything') {
      for (const resource of resources) {
        for (const position of resource.instances.keys()) ended.push(change(resource, position, serial));
      }
    } else {
      // First what goes, last what comes: nothing is to begin and end in one version.
      if (serial % COMING_AND_GOING === COMING_AND_GOING / 2 && resources.length > 1) {
        const resource = present(
          resources.splice(random.below(resources.length), 1)[0],
          'it is below the length',
        );
        for (const instance of resource.instances) ended.push({ resource, instance, deleteSerial: serial });
      }
      const start = random.below(resources.length);
      const step = Math.max(1, Math.floor(resources.length / CHANGED));
      for (let turn = 0; turn < Math.min(CHANGED, resources.length); turn += 1) {
        const resource = present(
          resources[(start + turn * step) % resources.length],
          'it is below the length',
        );
        ended.push(change(resource, random.below(resource.instances.length), serial));
      }
      if (serial % COMING_AND_GOING === 0) add(random.below(resources.length + 1), serial);
    }
    yield { serial, resources, ended };
  }
}

/** Every span of a history, those that last at the end. */
export function* walkSpans(shape: HistoryShape): Generator<Span, void, void> {
  let last: readonly Resource[] = [];
  for (const { resources, ended } of walkHistory(shape)) {
    yield* ended;
    last = resources;
  }
  for (const resource of last) {
    for (const instance of resource.instances) yield { resource, instance, deleteSerial: null };
  }
}
