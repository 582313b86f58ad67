import type { ResourceInstance, StateDocument, StateOutput } from '../terraform/document.ts';
import { soundsSecret } from '../terraform/secret-names.ts';

/** A value that differs. Secrets are left out, on either side. */
export interface ValueChange {
  /** As Terraform writes it: `tags.Name`, `ingress[0].cidr_blocks`. */
  readonly path: string;
  /** A scalar as JSON, `(sensitive)`, or how large a list or map is; undefined: there is none. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** A resource instance or an output that differs. */
export interface Difference {
  readonly kind: 'added' | 'removed' | 'changed';
  /** The address of an instance, or `output.NAME`. */
  readonly address: string;
  /** What of it differs; empty for what was added or removed. */
  readonly changes: readonly ValueChange[];
}

/** What stands in place of a value that is a secret, or may be one. */
const SENSITIVE = '(sensitive)';
const MAX_VALUE = 80;
/** Deeper than any schema of a provider goes. */
const MAX_DEPTH = 100;

/** What differs between two states, by resource instance and output, in order of address. */
export function diffStates(before: StateDocument, after: StateDocument): Difference[] {
  return [
    ...differing(instancesOf(before), instancesOf(after), diffInstances),
    ...differing(outputsOf(before), outputsOf(after), diffOutputs),
  ];
}

function differing<Item>(
  before: ReadonlyMap<string, Item>,
  after: ReadonlyMap<string, Item>,
  compare: (before: Item, after: Item) => ValueChange[],
): Difference[] {
  const addresses = new Set([...before.keys(), ...after.keys()]);
  return [...addresses].sort().flatMap((address): Difference[] => {
    const [one, other] = [before.get(address), after.get(address)];
    if (one === undefined) return [{ kind: 'added', address, changes: [] }];
    if (other === undefined) return [{ kind: 'removed', address, changes: [] }];
    const changes = compare(one, other);
    return changes.length > 0 ? [{ kind: 'changed', address, changes }] : [];
  });
}

/** By address; a deposed object, which shares the address of the current one, by itself. */
function instancesOf(document: StateDocument): Map<string, ResourceInstance> {
  return new Map(
    [...document.instances()].map((instance) => [
      `${instance.address}${instance.deposed ? ' (deposed)' : ''}`,
      instance,
    ]),
  );
}

function outputsOf(document: StateDocument): Map<string, StateOutput> {
  return new Map([...document.outputs()].map((output) => [`output.${output.name}`, output]));
}

function diffInstances(before: ResourceInstance, after: ResourceInstance): ValueChange[] {
  const changes: ValueChange[] = [];
  const plain = [
    ['(provider)', before.provider, after.provider],
    ['(schema version)', String(before.schemaVersion), String(after.schemaVersion)],
  ] as const;
  for (const [path, one, other] of plain) {
    if (one !== other) changes.push({ path, before: shortened(one), after: shortened(other) });
  }
  if (!sameJson(before.dependencies, after.dependencies)) {
    const [one, other] = [before, after].map(({ dependencies }) => shortened(dependencies.toString()));
    changes.push({ path: '(dependencies)', before: one, after: other });
  }
  try {
    const hides = hiddenIn(before, after);
    for (const change of compared([], before.attributes, after.attributes, hides)) changes.push(change);
  } catch (error) {
    // Nested deeper than is parsed; they differ as bytes.
    if (!(error instanceof RangeError)) throw error;
    changes.push({ path: '(attributes)', before: SENSITIVE, after: SENSITIVE });
  }
  if (changes.length === 0 && !sameJson(before.sensitivePaths, after.sensitivePaths)) {
    changes.push({ path: '(what is sensitive)', before: SENSITIVE, after: SENSITIVE });
  }
  return changes;
}

function diffOutputs(before: StateOutput, after: StateOutput): ValueChange[] {
  const isSecret = before.sensitive || after.sensitive || soundsSecret(before.name);
  const [one, other] = [String(before.sensitive), String(after.sensitive)];
  return [
    ...(one === other ? [] : [{ path: 'sensitive', before: one, after: other }]),
    ...compared(['value'], before.value, after.value, () => isSecret),
  ];
}

function sameJson(before: Buffer, after: Buffer): boolean {
  return compared([], before, after, () => true).length === 0;
}

/** Where two pieces of JSON differ, by paths below `path`. */
function compared(path: Path, before: Buffer, after: Buffer, hides: Hidden): ValueChange[] {
  if (before.equals(after)) return [];
  const [one, other] = [before, after].map((json) => parseExactly(json.toString()));
  return [...changesIn(path, one, other, hides)];
}

type Path = readonly (string | number)[];

/** Whether the value at a path is not shown. */
type Hidden = (path: Path) => boolean;

/** What Terraform marked on either side, and what is likely a secret by its name: old versions of Terraform mark little. */
function hiddenIn(before: ResourceInstance, after: ResourceInstance): Hidden {
  const isSecretType = soundsSecret(before.type);
  const marked = [before, after].flatMap(({ sensitivePaths }) =>
    markedPaths(parseExactly(sensitivePaths.toString())),
  );
  return (path) =>
    isSecretType ||
    path.some((step) => typeof step === 'string' && soundsSecret(step)) ||
    marked.some(
      (mark) => mark.every((step, at) => step === path[at]) || path.every((step, at) => step === mark[at]),
    );
}

/** The form of state files: a list of paths, each a list of steps with a type and a value. */
function markedPaths(paths: ExactJson): Path[] {
  if (!Array.isArray(paths)) return [];
  return paths.map((path: ExactJson) =>
    (Array.isArray(path) ? path : [path]).map(stepOf).filter((step) => step !== null),
  );
}

function stepOf(step: ExactJson): string | number | null {
  const value = isJsonObject(step) ? step.value : step;
  // The key of an index is a value with its type.
  const key = isJsonObject(value) ? value.value : value;
  if (typeof key === 'string') return key;
  return key instanceof ExactNumber ? Number(key.text) : null;
}

/** Where two values of JSON differ. */
function* changesIn(
  path: Path,
  before: ExactJson | undefined,
  after: ExactJson | undefined,
  hides: Hidden,
): Generator<ValueChange> {
  if (before instanceof ExactNumber && after instanceof ExactNumber && before.text === after.text) return;
  if (before === after) return;
  if (path.length >= MAX_DEPTH) {
    if (JSON.stringify(before) === JSON.stringify(after)) return;
  } else if (isJsonObject(before) && isJsonObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      yield* changesIn([...path, key], own(before, key), own(after, key), hides);
    }
    return;
  } else if (Array.isArray(before) && Array.isArray(after)) {
    for (let at = 0; at < Math.max(before.length, after.length); at++) {
      yield* changesIn([...path, at], before[at], after[at], hides);
    }
    return;
  }
  const shown = (value: ExactJson | undefined) =>
    value === undefined ? undefined : hides(path) ? SENSITIVE : scalarText(value);
  yield { path: pathText(path), before: shown(before), after: shown(after) };
}

function own(object: { readonly [key: string]: ExactJson }, key: string): ExactJson | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A scalar; of a list or a map no more than its size, since what is in it has paths of its own. */
function scalarText(value: ExactJson): string {
  if (value instanceof ExactNumber) return shortened(value.text);
  if (Array.isArray(value)) return `(list of ${value.length})`;
  if (isJsonObject(value)) return `(map of ${Object.keys(value).length})`;
  return shortened(JSON.stringify(value));
}

function shortened(text: string): string {
  return text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function pathText(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/** A number as it is spelled: none goes through a double. */
class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON, with numbers as they are spelled. */
type ExactJson =
  | null
  | boolean
  | string
  | ExactNumber
  | readonly ExactJson[]
  | { readonly [key: string]: ExactJson };

/** Parses JSON that is known to be good. */
function parseExactly(text: string): ExactJson {
  const revive = (_key: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? new ExactNumber(context?.source ?? String(value)) : value;
  return JSON.parse(text, revive);
}

function isJsonObject(value: ExactJson | undefined): value is { readonly [key: string]: ExactJson } {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  );
}
