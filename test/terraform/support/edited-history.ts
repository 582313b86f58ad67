import type { Choices } from '../../support/choices.ts';

/** An instance of a resource, as the JSON texts of its members in their order; null for JSON null. */
type Instance = string[] | null;

interface Resource {
  /** The JSON texts of its members but the instances. */
  readonly members: string[];
  readonly instances: Instance[];
  /** Before which of its members its instances stand. */
  instancesAt: number;
}

interface State {
  readonly resources: (Resource | null)[];
  /** JSON texts of further members. */
  readonly rest: string[];
  /** What stands between the tokens of the structure. */
  space: string;
}

const MODES = ['"managed"', '"managed"', '"managed"', '"data"', '"\\u0064ata"', '"ephemeral"', 'null'];
const NAMES = ['"a"', '"b"', '"c"', '"é"', '"\\u0061"', '""', 'null'];
const KEYS = ['0', '1', '2', '"0"', '"a"', '"b<"', '"q\\"x"', '"é"', '-5', 'null'];
const VALUES = [
  '"x"',
  '"y"',
  '1.50',
  '1e3',
  '1e90',
  '-0',
  'null',
  '[]',
  '[[[1]]]',
  '{"value": "v", "type": "string"}',
  '{"b": "<&>", "a": "\u2028"}',
  `"${'long '.repeat(40)}"`,
];

/**
 * The documents of a history, each edited from the one before: as Terraform edits states, and with everything else that
 * Go's decoder gives a meaning of its own. Some are none that can be held.
 */
export function editedHistory(choice: Choices): Buffer[] {
  const state: State = { resources: [], rest: [], space: ' ' };
  for (let count = 2 + choice.below(8); count > 0; count--) state.resources.push(newResource(choice));
  return Array.from({ length: 2 + choice.below(5) }, (_, serial) => {
    for (let edits = choice.below(4); edits > 0; edits--) edit(state, choice);
    const bytes = Buffer.from(textOf(state, serial));
    return choice.once(12) ? damaged(bytes, choice) : bytes;
  });
}

function newResource(choice: Choices): Resource {
  const members = [
    `"mode": ${choice.once(12) ? choice.of(MODES) : '"managed"'}`,
    `"name": ${choice.of(NAMES)}`,
    `"type": "thing"`,
    '"provider": "p"',
  ];
  if (choice.once(4)) members.push('"module": "module.m"');
  if (choice.once(6)) members.push('"each": "map"');
  const isSortedByName = choice.once(5);
  return {
    members,
    instances: Array.from({ length: 1 + choice.below(4) }, () => newInstance(choice)),
    instancesAt: isSortedByName ? 0 : members.length,
  };
}

function newInstance(choice: Choices): Instance {
  const members: string[] = [];
  if (choice.once(5)) members.push('"private": "bnVsbA=="');
  if (choice.once(5)) members.push('"identity": {"n": 1e90}');
  if (choice.once(5)) members.push('"dependencies": ["thing.z", "thing.y", "thing.x"]');
  if (choice.once(8)) members.push('"deposed": "00000001"');
  if (choice.once(2)) members.push(`"index_key": ${choice.of(KEYS)}`);
  members.push(`"attributes": {"id": ${choice.of(VALUES)}, "n": ${choice.below(3)}}`);
  if (choice.once(4)) members.push('"dependencies": ["thing.a", "thing.<b>"]');
  if (choice.once(3)) members.push(`"schema_version": ${choice.once(30) ? '4294967296' : choice.below(2)}`);
  if (choice.once(4)) members.push('"sensitive_attributes": [[{"type": "get_attr", "value": "id"}]]');
  return members;
}

/** What an edit makes of a state. */
type Edit = (state: State, choice: Choices) => void;

const EDITS: readonly Edit[] = [
  ({ resources }, choice) => {
    const instance = someInstance(resources, choice);
    instance?.splice(choice.below(instance.length + 1), 0, `"attributes": {"id": ${choice.of(VALUES)}}`);
  },
  ({ resources }, choice) => void resources.splice(0, 1 + choice.below(3)),
  ({ resources }, choice) =>
    void resources.splice(choice.below(resources.length + 1), 0, newResource(choice)),
  ({ resources }, choice) => {
    const members = some(resources, choice)?.members;
    members?.splice(1, 1, `"name": ${choice.of(NAMES)}`);
  },
  ({ resources }, choice) => swap(resources, choice),
  ({ resources }, choice) => swap(some(resources, choice)?.instances ?? [], choice),
  ({ resources }, choice) => {
    const instances = some(resources, choice)?.instances;
    instances?.splice(choice.below(instances.length + 1), 0, newInstance(choice));
  },
  ({ resources }, choice) => {
    const instances = some(resources, choice)?.instances;
    instances?.splice(choice.below(instances.length), 1);
  },
  ({ resources }, choice) => {
    const instance = someInstance(resources, choice);
    instance?.splice(choice.below(instance.length), 1);
  },
  ({ resources }, choice) => {
    const members = some(resources, choice)?.members;
    members?.splice(choice.once(9) ? 0 : 3, 1, `"provider": "${choice.of(['p', 'q'])}"`);
  },
  ({ resources }, choice) => {
    const resource = some(resources, choice);
    if (resource !== null) resource.instancesAt = choice.below(resource.members.length + 1);
  },
  // From here on what Terraform does not write.
  ({ resources }, choice) => {
    const copy = structuredClone(some(resources, choice));
    resources.splice(choice.below(resources.length + 1), 0, copy);
  },
  ({ resources }, choice) => {
    const instances = some(resources, choice)?.instances ?? [];
    const copy = structuredClone(instances[choice.below(instances.length || 1)] ?? null);
    instances.splice(choice.below(instances.length + 1), 0, copy);
  },
  ({ resources }, choice) => {
    const list = choice.of(['null', '[]', '[{}]', '[{"index_key": 7}, null, {"attributes": {"n": 9}}]']);
    some(resources, choice)?.members.push(`"${choice.of(['instances', 'Instances'])}": ${list}`);
  },
  ({ resources }, choice) => {
    const list = choice.of(['null', '[]', '["thing.z"]', '[null, "thing.y", null]']);
    someInstance(resources, choice)?.push(`"${choice.of(['dependencies', 'Dependencies'])}": ${list}`);
  },
  ({ resources }, choice) => {
    // The one before is refused as soon as the one after does not hide it any more.
    const twins = ['"schema_version": 4294967296', '"schema_version": 1'];
    some(resources, choice)?.instances.push(...twins.map((version) => ['"index_key": 77', version]));
  },
  ({ resources }, choice) => void some(resources, choice)?.instances.pop(),
  ({ resources }, choice) => {
    const member = choice.of([
      '"Attributes": 1',
      '"index_key": 3',
      '"DEPOSED": "x"',
      '"deposed": ""',
      '"\\u0061ttributes": 2',
    ]);
    someInstance(resources, choice)?.push(member);
  },
  ({ resources }, choice) => {
    const member = choice.of(['"Name": "b"', '"mode": "data"', '"Mode": "other"', '"Module": "module.n"']);
    some(resources, choice)?.members.push(member);
  },
  ({ rest }, choice) => {
    const list = choice.of([
      'null',
      '[]',
      '[null]',
      '[{}]',
      '[{"name": "other"}, {"instances": [{"index_key": 9}, {}, {"schema_version": 1}]}]',
      '[null, {"mode": "data", "instances": null}]',
    ]);
    rest.push(`"${choice.of(['resources', 'Resources'])}": ${list}`);
  },
  ({ rest }, choice) => {
    const value = choice.of(VALUES);
    rest.push(`"outputs": {"o": {"value": ${value}, "type": "string"}, "p": {"Value": ${value}}}`);
  },
  ({ rest }, choice) => void rest.push(`"check_results": ${'['.repeat(choice.below(40))}`),
  ({ rest }) => void rest.splice(0),
  (state, choice) => {
    state.space = choice.of(['', ' ', '\n  ']);
  },
];

function edit(state: State, choice: Choices): void {
  choice.of(EDITS)(state, choice);
}

function some<Item>(items: readonly Item[], choice: Choices): Item | null {
  return items[choice.below(items.length || 1)] ?? null;
}

function someInstance(resources: readonly (Resource | null)[], choice: Choices): Instance {
  return some(some(resources, choice)?.instances ?? [], choice);
}

function swap<Item>(items: Item[], choice: Choices): void {
  if (items.length < 2) return;
  const [first] = items.splice(choice.below(items.length), 1);
  if (first !== undefined) items.splice(choice.below(items.length + 1), 0, first);
}

function textOf({ resources, rest, space }: State, serial: number): string {
  const list = (items: readonly string[]) => `[${space}${items.join(`,${space}`)}${space}]`;
  const object = (members: readonly string[]) => `{${space}${members.join(`,${space}`)}${space}}`;
  const instanceText = (instance: Instance) => (instance === null ? 'null' : object(instance));
  const resourceText = (resource: Resource | null) => {
    if (resource === null) return 'null';
    const { members, instances, instancesAt } = resource;
    return object(members.toSpliced(instancesAt, 0, `"instances": ${list(instances.map(instanceText))}`));
  };
  const closed = rest.map(
    (member) => member + ']'.repeat(member.split('[').length - member.split(']').length),
  );
  return object([
    '"version": 4',
    `"serial": ${serial}`,
    `"resources": ${list(resources.map(resourceText))}`,
    ...closed,
  ]);
}

function damaged(bytes: Buffer, choice: Choices): Buffer {
  const at = choice.below(bytes.length);
  const byte = choice.of([...Buffer.from('{}[],:"\\0-.eu \n'), 0x80, 0xc3]);
  return Buffer.concat([bytes.subarray(0, at), Buffer.from([byte]), bytes.subarray(at + choice.below(4))]);
}
