import fc from 'fast-check';
import type { CaseTag, CaseVersion } from '../../support/fixtures.ts';

/** How the client that posted a version spelled it, and so what Kilolock hashed (data model 3.6 and trap 22). */
export type Dialect = 'terraform' | 'jsonb' | 'compact' | 'before schema versions';

/** A version of a random history. */
export interface RandomVersion extends CaseVersion {
  readonly dialect: Dialect;
}

/** An event, and the versions it names, by serial: in its column, and by id in its payload. */
export interface RandomEvent {
  readonly kind: string;
  readonly serial: string | null;
  readonly actor: string | null;
  readonly payload: string;
  /** A key of the payload that holds the id of a version. */
  readonly idKey: string | null;
  readonly idOf: string;
  readonly createdAt: string;
}

/** A history such as Kilolock could hold. */
export interface RandomHistory {
  readonly state: { readonly name: string; readonly lineage: string | null };
  readonly versions: readonly RandomVersion[];
  readonly current_serial: string;
  readonly tags: readonly CaseTag[];
  readonly events: readonly RandomEvent[];
}

const LINEAGE = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10';

// PostgreSQL's text holds every character but NUL.
const text = fc
  .oneof(
    fc.constantFrom(
      '',
      'plain',
      'quo"te',
      "it's",
      'new\nline',
      'tab\t',
      '🚀',
      'é',
      '\u2028',
      '<&>',
      '\\',
      '\u007f',
    ),
    fc.string({ unit: 'binary', maxLength: 8 }),
  )
  .map((characters) => characters.replaceAll('\0', ''));

const optionalText = fc.option(text, { freq: 3 });

const microseconds = fc
  .integer({ min: 0, max: 999_999 })
  .map((fraction) => String(fraction).padStart(6, '0'));
const time = fc
  .tuple(fc.integer({ min: 0, max: 28 * 86_400 - 1 }), microseconds)
  .map(([second, fraction]) =>
    new Date(Date.UTC(2026, 1, 1) + second * 1000).toISOString().replace('000Z', `${fraction}Z`),
  );

const json = (value: unknown): string => JSON.stringify(value);

/** JSON text of an attribute, numbers that no double holds included. */
const attributeText: fc.Arbitrary<string> = fc.oneof(
  text.map(json),
  fc.constantFrom('null', 'true', '0', '-0', '1.50', '1e3', '18446744073709551615', '0.1000', '[]', '{}'),
  fc.jsonValue({ maxDepth: 2, stringUnit: 'grapheme' }).map(json).filter(isStorable),
  // Values of dynamic type, and one that only looks like it (data model 3.9).
  text.map((value) => `{"value": ${json(value)}, "type": "string"}`),
  text.map(
    (value) =>
      `{"value": {"b": [${json(value)}], "a": 1}, "type": ["object", {"a": "number", "b": ["list", "string"]}]}`,
  ),
  text.map((value) => `{"value": ${json(value)}, "type": "number"}`),
);

function isStorable(jsonText: string): boolean {
  return !/\\u(?:0000|d[89a-f])/i.test(jsonText);
}

const members = (count: number) =>
  fc
    .uniqueArray(fc.tuple(text, attributeText), { maxLength: count, selector: ([key]) => key })
    .map((pairs) => pairs.map(([key, value]) => `${json(key)}: ${value}`).join(', '));

/** What an instance can hold, as JSON members; `id` tells one content from the others of the same instance. */
const content = (id: string) =>
  fc
    .record({
      attributes: members(3).map((rest) => `{"id": ${json(id)}${rest === '' ? '' : `, ${rest}`}}`),
      sensitive: fc.constantFrom(
        '',
        ', "sensitive_attributes": []',
        ', "sensitive_attributes": null',
        ', "sensitive_attributes": [[{"type": "get_attr", "value": "id"}]]',
      ),
      schemaVersion: fc.constantFrom('', ', "schema_version": 0', ', "schema_version": 3'),
      dependencies: fc.constantFrom(
        '',
        ', "dependencies": null',
        ', "dependencies": ["thing.r0", "module.net.thing.r1"]',
        ', "dependencies": ["thing.r1[\\"<k>\\"]", "data.thing.r0", "thing.r0"]',
      ),
    })
    .map(
      (part) => `"attributes": ${part.attributes}${part.sensitive}${part.schemaVersion}${part.dependencies}`,
    );

const key = fc.oneof(
  fc.integer({ min: 0, max: 3 }),
  fc.constantFrom('0', '007', '-5', '1e3', 'a.b', 'q"x', 'n\nl', '🚀', '\u2028', '', '9223372036854775808'),
  text,
);

/** Where an instance is in one version, or null when it is not there. */
interface Placement {
  readonly module: string;
  readonly content: number;
  readonly marks: string;
  readonly hasDeposed: boolean;
}

const placement = fc.option(
  fc.record<Placement>({
    module: fc.constantFrom('', '', '', 'module.net', 'module.net["x"].module.in'),
    content: fc.constantFrom(0, 0, 0, 1, 2),
    marks: fc.constantFrom(
      '',
      '',
      ', "status": "tainted"',
      ', "private": "c2VjcmV0"',
      ', "create_before_destroy": true, "unheard_of": [1.0]',
    ),
    hasDeposed: fc.constantFrom(false, false, false, false, true),
  }),
  { freq: 4 },
);

/** One resource over `versions` versions: its instances appear, change, move and vanish. */
const resource = (name: string, versions: number) =>
  fc.record({
    head: fc
      .tuple(fc.constantFrom('managed', 'managed', 'data'), fc.constantFrom('thing', 'other_thing'))
      .map(
        ([mode, type]) =>
          `"mode": "${mode}", "type": "${type}", "name": "${name}", "provider": "provider[\\"registry.terraform.io/x/y\\"]"`,
      ),
    instances: fc.oneof(
      instance(fc.constant(null), versions).map((one) => [one]),
      fc.uniqueArray(instance(key, versions), {
        minLength: 1,
        maxLength: 3,
        selector: ({ key: of }) => String(of),
      }),
    ),
  });

const instance = (keys: fc.Arbitrary<number | string | null>, versions: number) =>
  fc.record({
    key: keys,
    contents: fc.tuple(content('c0'), content('c1'), content('c2')),
    placements: fc.array(placement, { minLength: versions, maxLength: versions }),
  });

type Resource = ArbitraryValue<ReturnType<typeof resource>>;
type ArbitraryValue<T> = T extends fc.Arbitrary<infer Value> ? Value : never;

/** The `resources` of the version at `index`. A resource in several modules is written once for each. */
function resourcesText(resources: readonly Resource[], index: number): string {
  return resources
    .flatMap(({ head, instances }) => {
      const present = instances.flatMap((one) => {
        const at = one.placements[index];
        return at ? [{ ...one, at }] : [];
      });
      return [...Map.groupBy(present, ({ at }) => at.module)].map(([module, ofModule]) => {
        const written = ofModule.flatMap(({ key: of, contents, at }) => {
          const index_key = of === null ? '' : `"index_key": ${json(of)}, `;
          const current = `{${index_key}${contents[at.content]}${at.marks}}`;
          return at.hasDeposed ? [current, `{${index_key}"deposed": "a1b2c3d4", ${contents[2]}}`] : [current];
        });
        return `{${module === '' ? '' : `"module": ${json(module)}, `}${head}, "instances": [${written.join(', ')}]}`;
      });
    })
    .join(', ');
}

const outputs = fc
  .uniqueArray(
    fc.tuple(
      fc.oneof(text, fc.constantFrom('serial', 'resources', 'version')),
      attributeText,
      fc.constantFrom('', ', "type": "string"', ', "type": ["list", "string"], "sensitive": true'),
    ),
    { maxLength: 2, selector: ([name]) => name },
  )
  .map((list) => list.map(([name, value, rest]) => `${json(name)}: {"value": ${value}${rest}}`).join(', '));

const serials = (count: number) =>
  fc
    .tuple(
      fc.constantFrom(0n, 1n, 1n, 4n),
      fc.array(fc.constantFrom(1n, 1n, 1n, 2n, 5n, 2n ** 53n), { minLength: count, maxLength: count }),
    )
    .map(([first, steps]) =>
      steps.map((_, index) => steps.slice(0, index).reduce((sum, step) => sum + step, first)),
    );

const tagName = fc
  .oneof(text, fc.constantFrom('release', 'Release', 'release 1\nwith a newline', '12\n', '%_\\', ' '))
  .filter((tag) => tag !== '' && tag !== 'current' && !tag.startsWith('@') && !/^[0-9]+$/.test(tag));

const eventShape = fc.oneof(
  fc.record({
    kind: fc.constant('state_write'),
    idKey: fc.constant(null),
    payload: fc.constantFrom(
      '{"serial": 9007199254740993, "scale": 1.10}',
      '{}',
      '["no", "object"]',
      '7',
      'null',
    ),
  }),
  fc.record({
    kind: fc.constantFrom('state_rollback'),
    idKey: fc.constant('replayed_from_version'),
    payload: fc.constant('{"replayed_from_serial": 4}'),
  }),
  fc.record({
    kind: fc.constant('tag.set'),
    idKey: fc.constant('resolved_version_id'),
    payload: members(2).map((rest) => `{${rest}}`),
  }),
  fc.record({
    kind: fc.constant('tag.unset'),
    idKey: fc.constant('was_version_id'),
    payload: text.map((tag) => `{"tag": ${json(tag)}}`),
  }),
  fc.record({
    kind: fc.constant('lock_acquire'),
    idKey: fc.constant(null),
    payload: fc.constant('{"lock_id": "l"}'),
  }),
);

/** Histories of one to five versions of up to four resources. */
export const randomHistory: fc.Arbitrary<RandomHistory> = fc.integer({ min: 1, max: 5 }).chain((count) =>
  fc
    .record({
      lineage: fc.option(fc.constant(LINEAGE)),
      serials: serials(count),
      resources: fc.tuple(...['r0', 'r1', 'r2', 'r3'].map((name) => resource(name, count))),
      versions: fc.array(
        fc.record({
          dialect: fc.constantFrom<Dialect>(
            'terraform',
            'terraform',
            'jsonb',
            'compact',
            'before schema versions',
          ),
          source: fc.oneof(fc.constantFrom('apply', 'refresh', 'rollback', 'resource-move:a->b'), text),
          createdAt: time,
          createdBy: optionalText,
          terraformVersion: fc.option(fc.constantFrom('', '1.9.8')),
          lineage: fc.constantFrom(
            '',
            LINEAGE,
            LINEAGE.toUpperCase(),
            'f0000000-0000-4000-8000-000000000000',
          ),
          outputs,
          unknown: fc.constantFrom('', ', "check_results": null', ', "unheard_of": {"a": 1.50}'),
        }),
        { minLength: count, maxLength: count },
      ),
      current: fc.oneof(fc.constant(count - 1), fc.nat(count - 1)),
      tags: fc.uniqueArray(
        fc.record({
          tag: tagName,
          at: fc.nat(count - 1),
          description: optionalText,
          actor: text,
          set: time,
          moved: time,
        }),
        { maxLength: 3, selector: ({ tag }) => tag },
      ),
      events: fc.array(
        fc.record({
          shape: eventShape,
          at: fc.option(fc.nat(count - 1)),
          idOf: fc.nat(count - 1),
          actor: optionalText,
          createdAt: time,
        }),
        { maxLength: 4 },
      ),
    })
    .map(({ serials: all, ...parts }): RandomHistory => {
      const serialAt = (index: number) => String(all[index] ?? 0n);
      return {
        state: { name: 'random', lineage: parts.lineage },
        current_serial: serialAt(parts.current),
        versions: parts.versions.map((version, index) => ({
          serial: serialAt(index),
          dialect: version.dialect,
          source: version.source,
          created_at: version.createdAt,
          created_by: version.createdBy,
          terraform_version: version.terraformVersion,
          raw_state: `{"version": 4, "terraform_version": "1.9.8", "serial": ${serialAt(index)}, "lineage": "${version.lineage}", "outputs": {${version.outputs}}, "resources": [${resourcesText(parts.resources, index)}]${version.unknown}}`,
        })),
        tags: parts.tags.map(({ tag, at, description, actor, set, moved }) => ({
          tag,
          description,
          actor,
          serial: serialAt(at),
          created_at: set,
          updated_at: moved,
        })),
        events: parts.events.map(({ shape, at, idOf, actor, createdAt }) => ({
          ...shape,
          actor,
          createdAt,
          serial: at === null ? null : serialAt(at),
          idOf: serialAt(idOf),
        })),
      };
    }),
);
