import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  decodeString,
  endOfString,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-bytes.ts';

/** Keys that Terraform did not choose are cut to this many characters. */
const MAX_KEY_LENGTH = 64;
const MAX_SEGMENTS = 40;

const ROOT_KEYS = new Set([
  'version',
  'terraform_version',
  'serial',
  'lineage',
  'outputs',
  'resources',
  'check_results',
  'encrypted_data',
]);
const OUTPUT_KEYS = new Set(['value', 'type', 'sensitive']);
const RESOURCE_KEYS = new Set(['module', 'mode', 'type', 'name', 'provider', 'each', 'instances']);
const INSTANCE_KEYS = new Set([
  'index_key',
  'schema_version',
  'attributes',
  'attributes_flat',
  'sensitive_attributes',
  'identity',
  'identity_schema_version',
  'private',
  'status',
  'deposed',
  'dependencies',
  'create_before_destroy',
]);

/**
 * The JSON path of the value, or of the parent of the key, that holds the byte at `offset`.
 *
 * Finds it by walking the text again from its beginning, so that reading a good document never pays for
 * it. The text before `offset` must be JSON.
 */
export function jsonPathAt(bytes: Buffer, offset: number): string {
  return render(segmentsAt(bytes, offset));
}

/** The JSON path of an instance. */
export function resourcePath({ resource, instance }: { resource: number; instance: number }): string {
  return render(['resources', resource, 'instances', instance]);
}

/** The JSON path of an output. */
export function outputPath(name: string): string {
  return render(['outputs', name]);
}

interface Frame {
  isObject: boolean;
  /** Position of the current element in an array. */
  index: number;
  /** Where the current member's key is, in an object; null between members. */
  key: readonly [start: number, end: number] | null;
}

function segmentsAt(bytes: Buffer, offset: number): (string | number)[] {
  const frames: Frame[] = [];
  let p = 0;
  while (p < offset) {
    const top = frames.at(-1);
    switch (bytes[p]) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        frames.push({ isObject: bytes[p] === OPEN_BRACE, index: 0, key: null });
        p++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        frames.pop();
        p++;
        break;
      case COMMA:
        if (top !== undefined) {
          top.index++;
          top.key = null;
        }
        p++;
        break;
      case QUOTE: {
        const end = endOfString(bytes, p);
        if (top?.isObject && top.key === null && end <= offset) top.key = [p, end];
        p = end;
        break;
      }
      default:
        p++;
    }
  }
  const segments: (string | number)[] = [];
  for (const frame of frames) {
    if (!frame.isObject) segments.push(frame.index);
    else if (frame.key !== null) segments.push(decodeString(bytes, ...frame.key));
  }
  return segments;
}

function render(segments: readonly (string | number)[]): string {
  let path = '$';
  for (const [depth, segment] of segments.entries()) {
    if (depth === MAX_SEGMENTS) return `${path}…`;
    if (typeof segment === 'number') path += `[${segment}]`;
    else if (isStructural(segments, depth, segment)) path += `.${segment}`;
    else if (!isNameInSchema(segments, depth)) path += '[…]';
    else if (segment.length <= MAX_KEY_LENGTH) path += `[${JSON.stringify(segment)}]`;
    else path += `[${JSON.stringify(`${segment.slice(0, MAX_KEY_LENGTH)}…`)}]`;
  }
  return path;
}

/**
 * Whether a key names an output, an attribute or a field of Terraform's own objects. Those further down are keys of
 * maps that authors fill: they are contents of the state, and may be as secret as its values.
 */
function isNameInSchema(segments: readonly (string | number)[], depth: number): boolean {
  if (depth === 0) return true;
  if (segments[0] === 'outputs') return depth <= 2;
  return segments[0] === 'resources' && (depth <= 4 || (depth === 5 && segments[4] === 'attributes'));
}

/** Whether Terraform itself chose this key, rather than a provider or an author. */
function isStructural(segments: readonly (string | number)[], depth: number, key: string): boolean {
  if (depth === 0) return ROOT_KEYS.has(key);
  if (segments[0] === 'outputs') return depth === 2 && OUTPUT_KEYS.has(key);
  if (segments[0] !== 'resources') return false;
  if (depth === 2) return RESOURCE_KEYS.has(key);
  return depth === 4 && segments[2] === 'instances' && INSTANCE_KEYS.has(key);
}
