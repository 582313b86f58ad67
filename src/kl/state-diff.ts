import type { ResourceInstance, StateDocument } from '../terraform/document.ts';
import { soundsSecret } from '../terraform/secret-names.ts';
import { type ExactJson, ExactNumber, isJsonObject, parseExactly } from './exact-json.ts';

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
  return [...diffResources(before, after), ...diffOutputs(before, after)];
}

function diffResources(before: StateDocument, after: StateDocument): Difference[] {
  const [old, now] = [instancesOf(before), instancesOf(after)];
  const addresses = new Set([...old.keys(), ...now.keys()]);
  const differences: Difference[] = [];
  for (const address of [...addresses].sort()) {
    const [one, other] = [old.get(address), now.get(address)];
    if (one === undefined || other === undefined) {
      differences.push({ kind: one === undefined ? 'added' : 'removed', address, changes: [] });
      continue;
    }
    const changes = diffInstances(one, other);
    if (changes.length > 0) differences.push({ kind: 'changed', address, changes });
  }
  return differences;
}

/** By address; a deposed object, which shares the address of the current one, by itself. */
function instancesOf(document: StateDocument): Map<string, ResourceInstance> {
  const instances = new Map<string, ResourceInstance>();
  for (const instance of document.instances()) {
    instances.set(`${instance.address}${instance.deposed ? ' (deposed)' : ''}`, instance);
  }
  return instances;
}

function diffInstances(before: ResourceInstance, after: ResourceInstance): ValueChange[] {
  const secrets = new Secrets(before, after);
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
  if (!before.attributes.equals(after.attributes)) {
    try {
      const [one, other] = [before, after].map(({ attributes }) => parseExactly(attributes.toString()));
      new Walk(secrets, changes).compare([], one, other);
    } catch (error) {
      // Nested deeper than is parsed; they differ as bytes.
      if (!(error instanceof RangeError)) throw error;
      changes.push({ path: '(attributes)', before: SENSITIVE, after: SENSITIVE });
    }
  }
  if (changes.length === 0 && !sameJson(before.sensitivePaths, after.sensitivePaths)) {
    changes.push({ path: '(what is sensitive)', before: SENSITIVE, after: SENSITIVE });
  }
  return changes;
}

function sameJson(before: Buffer, after: Buffer): boolean {
  if (before.equals(after)) return true;
  const changes: ValueChange[] = [];
  new Walk(null, changes).compare([], parseExactly(before.toString()), parseExactly(after.toString()));
  return changes.length === 0;
}

function diffOutputs(before: StateDocument, after: StateDocument): Difference[] {
  const [old, now] = [before, after].map(
    (document) => new Map([...document.outputs()].map((output) => [output.name, output])),
  );
  const differences: Difference[] = [];
  for (const name of [...new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])].sort()) {
    const [one, other] = [old?.get(name), now?.get(name)];
    const address = `output.${name}`;
    if (one === undefined || other === undefined) {
      differences.push({ kind: one === undefined ? 'added' : 'removed', address, changes: [] });
      continue;
    }
    const changes: ValueChange[] = [];
    const isSecret = one.sensitive || other.sensitive || soundsSecret(name);
    if (one.sensitive !== other.sensitive) {
      changes.push({ path: 'sensitive', before: String(one.sensitive), after: String(other.sensitive) });
    }
    const [was, is] = [parseExactly(one.value.toString()), parseExactly(other.value.toString())];
    new Walk(isSecret ? ALL_SECRET : null, changes).compare(['value'], was, is);
    if (changes.length > 0) differences.push({ kind: 'changed', address, changes });
  }
  return differences;
}

type Path = readonly (string | number)[];

/** Which values of an instance are not shown. */
interface Hidden {
  hides(path: Path): boolean;
}

const ALL_SECRET: Hidden = { hides: () => true };

/** What Terraform marked on either side, and what is likely a secret by its name: old versions of Terraform mark little. */
class Secrets implements Hidden {
  readonly #marked: Path[] = [];
  readonly #isSecretType: boolean;

  constructor(before: ResourceInstance, after: ResourceInstance) {
    for (const { sensitivePaths } of [before, after]) this.#mark(parseExactly(sensitivePaths.toString()));
    this.#isSecretType = soundsSecret(before.type);
  }

  hides(path: Path): boolean {
    return (
      this.#isSecretType ||
      path.some((step) => typeof step === 'string' && soundsSecret(step)) ||
      this.#marked.some(
        (marked) =>
          marked.every((step, at) => step === path[at]) || path.every((step, at) => step === marked[at]),
      )
    );
  }

  /** The form of state files: a list of paths, each a list of steps with a type and a value. */
  #mark(paths: ExactJson): void {
    if (!Array.isArray(paths)) return;
    for (const path of paths as readonly ExactJson[]) {
      const steps = Array.isArray(path) ? (path as readonly ExactJson[]) : [path];
      this.#marked.push(steps.map(stepOf).filter((step) => step !== null));
    }
  }
}

function stepOf(step: ExactJson): string | number | null {
  const value = isJsonObject(step) ? step.value : step;
  // The key of an index is a value with its type.
  const key = isJsonObject(value) ? value.value : value;
  if (typeof key === 'string') return key;
  return key instanceof ExactNumber ? Number(key.text) : null;
}

/** Finds where two values of JSON differ. */
class Walk {
  readonly #hidden: Hidden | null;
  readonly #changes: ValueChange[];

  constructor(hidden: Hidden | null, changes: ValueChange[]) {
    this.#hidden = hidden;
    this.#changes = changes;
  }

  compare(path: Path, before: ExactJson | undefined, after: ExactJson | undefined): void {
    if (before instanceof ExactNumber && after instanceof ExactNumber && before.text === after.text) return;
    if (before === after) return;
    if (path.length < MAX_DEPTH) {
      if (isJsonObject(before) && isJsonObject(after)) {
        for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
          this.compare([...path, key], own(before, key), own(after, key));
        }
        return;
      }
      if (Array.isArray(before) && Array.isArray(after)) {
        for (let at = 0; at < Math.max(before.length, after.length); at++) {
          this.compare([...path, at], before[at], after[at]);
        }
        return;
      }
    } else if (JSON.stringify(before) === JSON.stringify(after)) return;
    const shown = (value: ExactJson | undefined) =>
      value === undefined ? undefined : this.#hidden?.hides(path) ? SENSITIVE : scalarText(value);
    this.#changes.push({ path: pathText(path), before: shown(before), after: shown(after) });
  }
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
