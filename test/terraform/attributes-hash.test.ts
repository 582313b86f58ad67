import { describe, expect, test } from '@jest/globals';
import { AttributesHasher, type AttributesHashFields } from '../../src/terraform/attributes-hash.ts';

const vpc: AttributesHashFields = {
  mode: 'managed',
  type: 'aws_vpc',
  name: 'main',
  provider: 'provider["registry.terraform.io/hashicorp/aws"]',
  modulePath: '',
  indexKind: 'none',
  indexValue: null,
  schemaVersion: 1,
  attributes: Buffer.from('{"id":"vpc-1"}'),
  sensitivePaths: Buffer.from('[]'),
  dependencies: Buffer.from('[]'),
};

const keyed: AttributesHashFields = {
  mode: 'data',
  type: 't',
  name: 'n',
  provider: 'provider["registry.terraform.io/hashicorp/null"]',
  modulePath: 'module.m',
  indexKind: 'string',
  indexValue: 'k<1>',
  schemaVersion: 0,
  attributes: Buffer.from('{"b":1,"aa":"x<y"}'),
  sensitivePaths: Buffer.from('[]'),
  dependencies: Buffer.from('["a.b", "c.d<"]'),
};

describe('attributes_hash is the one Kilolock computes', () => {
  test.each([
    ['compact', vpc, '62b4a29467b43aaa266f410cb848d2f6cd660784f06d1ceeaf6d1458eddf5f59'],
    [
      'as PostgreSQL prints it',
      { ...vpc, attributes: Buffer.from('{"id": "vpc-1"}') },
      '03ad720440b914efbdc531e2838c12e001d5fd40dbe926ec81f1ad40f121bda2',
    ],
    [
      'as Terraform writes it',
      { ...vpc, attributes: Buffer.from('{\n            "id": "vpc-1"\n          }') },
      'f817aadceb84c4a46382c7dcbb95f8ecd8a60ab6a36a0d74889c1e264667862a',
    ],
    [
      'with a key and dependencies',
      keyed,
      'a751a0cf42042bf48892838afec8fbcbe68ef8ff0d440baf885d1b09120fb0a4',
    ],
  ])('%s', (_spelling, fields, hash) => {
    expect(Buffer.from(new AttributesHasher('as-written').hash(fields), 'latin1').toString('hex')).toBe(hash);
  });
});
