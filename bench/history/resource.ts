import { hash } from 'node:crypto';
import type { SeededRandom } from './seeded-random.ts';
import type { HistoryShape } from './shape.ts';

/** An element of a document's `resources`. */
export interface Resource {
  readonly type: string;
  readonly name: string;
  readonly modulePath: string;
  readonly instances: Instance[];
}

/** What one instance of a resource holds until it changes. */
export interface Instance {
  /** The key of `count`; null when the resource has one instance alone. */
  readonly index: number | null;
  /** JSON text. */
  readonly attributes: string;
  /** JSON text of the list of addresses. */
  readonly dependencies: string;
  /** What a provider keeps to itself, base64; empty when it keeps nothing. */
  readonly private: string;
  /** The serial of the version that brought it. */
  readonly createSerial: number;
}

export const PROVIDER = 'provider["registry.terraform.io/hashicorp/aws"]';
export const SCHEMA_VERSION = 1;

type Attributes = Readonly<Record<string, unknown>>;

const TYPES: readonly {
  readonly type: string;
  attributes(name: string, random: SeededRandom): Attributes;
}[] = [
  {
    type: 'aws_instance',
    attributes: (name, random) => ({
      ami: `ami-${random.hex(9)}`,
      arn: `arn:aws:ec2:eu-central-1:123456789012:instance/i-${random.hex(9)}`,
      availability_zone: 'eu-central-1a',
      id: `i-${random.hex(9)}`,
      instance_type: 't3.small',
      private_ip: `10.0.${random.below(256)}.${random.below(256)}`,
      root_block_device: [
        { encrypted: true, iops: 3000, volume_id: `vol-${random.hex(9)}`, volume_size: 20 },
      ],
      tags: { Environment: 'production', Name: name, Owner: 'platform' },
    }),
  },
  {
    type: 'aws_iam_role',
    attributes: (name, random) => ({
      arn: `arn:aws:iam::123456789012:role/${name}`,
      assume_role_policy:
        '{"Statement":[{"Action":"sts:AssumeRole","Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Sid":""}],"Version":"2012-10-17"}',
      create_date: '2026-01-05T10:00:00Z',
      id: name,
      path: '/',
      tags: { Environment: 'production', Name: name, Owner: 'platform' },
      unique_id: `AROA${random.hex(9).toUpperCase()}`,
    }),
  },
  {
    type: 'aws_security_group_rule',
    attributes: (name, random) => ({
      cidr_blocks: [`10.${random.below(256)}.0.0/16`, `172.16.${random.below(256)}.0/24`],
      description: `Traffic of ${name}`,
      from_port: 1024 + random.below(60_000),
      id: `sgrule-${random.below(4_000_000_000)}`,
      protocol: 'tcp',
      security_group_id: `sg-${random.hex(9)}`,
      security_group_rule_id: `sgr-${random.hex(9)}`,
      source_security_group_id: null,
      to_port: 65_535,
      type: 'ingress',
    }),
  },
  {
    type: 'aws_s3_object',
    attributes: (name, random) => ({
      arn: `arn:aws:s3:::configuration-of-production/${name}.json`,
      bucket: 'configuration-of-production',
      checksum_sha256: random.base64(32),
      content_type: 'application/json',
      etag: random.hex(16),
      id: `configuration-of-production/${name}.json`,
      key: `${name}.json`,
      metadata: {},
      server_side_encryption: 'AES256',
      storage_class: 'STANDARD',
      version_id: random.base64(24),
    }),
  },
];

const PRIVATE_BYTES = 102;

/** The resource that is the `number`th to be there, without its instances. */
export function newResource(number: number): Resource {
  const { type } = kindOf(number);
  const modulePath = number % 3 === 0 ? 'module.network' : '';
  return { type, name: `item_${number}`, modulePath, instances: [] };
}

/** A new content for an instance of a resource. */
export function newInstance(
  resource: Resource,
  index: number | null,
  createSerial: number,
  { contents }: Pick<HistoryShape, 'contents'>,
  random: SeededRandom,
): Instance {
  if (contents === 'id') {
    const attributes = `{"id": "${random.hex(6)}"}`;
    return { index, attributes, dependencies: '[]', private: '', createSerial };
  }
  const number = Number(resource.name.slice('item_'.length));
  return {
    index,
    attributes: JSON.stringify(kindOf(number).attributes(resource.name, random)),
    dependencies: JSON.stringify(['aws_vpc.main', `module.network.aws_subnet.private_${number % 7}`]),
    private: random.base64(PRIVATE_BYTES),
    createSerial,
  };
}

function kindOf(number: number) {
  const kind = TYPES[number % TYPES.length];
  if (kind === undefined) throw new Error(`There is no resource ${number}.`);
  return kind;
}

/** The address of an instance, as Terraform writes it. */
export function addressOf({ modulePath, type, name }: Resource, { index }: Instance): string {
  const module = modulePath === '' ? '' : `${modulePath}.`;
  return `${module}${type}.${name}${index === null ? '' : `[${index}]`}`;
}

/** JSON text of a resource with all its instances. */
export function* resourceText(resource: Resource): Generator<string, void, void> {
  const { type, name, modulePath, instances } = resource;
  const module = modulePath === '' ? '' : `"module": "${modulePath}", `;
  yield `{${module}"mode": "managed", "type": "${type}", "name": "${name}", "provider": ${JSON.stringify(PROVIDER)}, "instances": [`;
  for (const [position, instance] of instances.entries()) {
    yield `${position === 0 ? '' : ', '}${instanceText(instance)}`;
  }
  yield ']}';
}

function instanceText({ index, attributes, dependencies, private: kept }: Instance): string {
  const key = index === null ? '' : `"index_key": ${index}, `;
  const rest = kept === '' ? '' : `, "private": "${kept}", "dependencies": ${dependencies}`;
  return `{${key}"schema_version": ${SCHEMA_VERSION}, "attributes": ${attributes}, "sensitive_attributes": []${rest}}`;
}

/** The hash Kilolock keeps of an instance: over what Terraform wrote, its indentation included (data model 3.5, 3.6). */
export function attributesHash(resource: Resource, { index, attributes, dependencies }: Instance): string {
  const { type, name, modulePath } = resource;
  const written = JSON.stringify(JSON.parse(attributes), null, 2).replaceAll('\n', `\n${' '.repeat(10)}`);
  const key = index === null ? ['none', ''] : ['int', String(index)];
  const fields = ['managed', type, name, PROVIDER, modulePath, ...key, String(SCHEMA_VERSION)];
  return hash('sha256', [...fields, written, '[]', dependencies].join('\u001f'));
}
