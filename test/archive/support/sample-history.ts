import type { SampleHistory } from './build-archive.ts';

/** A small history with something of everything: gaps, NULL beside '', text of several alphabets, a current version that is not the last. */
export const sampleHistory: SampleHistory = {
  state: { currentSerial: 10n },
  versions: [
    {
      serial: 0n,
      rawState: '{"serial": 0, "lineage": "", "version": 4, "resources": []}',
      source: 'genesis',
      terraformVersion: '0.0.0',
      createdBy: 'system',
    },
    {
      serial: 2n,
      rawState: '{"serial": 2, "big": 18446744073709551615, "scale": 1.10, "version": 4}',
      terraformVersion: null,
      createdBy: null,
    },
    {
      serial: 10n,
      rawState: '{"serial": 10, "text": "é 🚀 \\u2028", "version": 4}',
      source: 'resource-move:aws_instance.a->module.x.aws_instance.a',
      terraformVersion: '',
      createdBy: '',
    },
    {
      serial: 9223372036854775806n,
      rawState: `{"serial": 9223372036854775806, "pad": "${'abcdefghij'.repeat(700)}"}`,
      createdBy: 'Zoë <zoe@example.org>',
    },
  ],
  tags: [
    { tag: 'release 1\nwith a newline', serial: 0n, description: '' },
    { tag: '🚀', serial: 10n, description: 'beyond the basic plane' },
    { tag: '\uffee', serial: 2n, description: null, actor: '' },
    { tag: 'Release', serial: 10n, description: 'é' },
  ],
  events: [
    { kind: 'state_write', serial: 2n, payload: '{"serial": 2, "big": 9007199254740993}' },
    { kind: 'tag.set', actor: null, payload: '{"tag": "Release"}' },
    { kind: 'state_rollback', serial: 10n, actor: '' },
  ],
  resources: [
    { address: 'aws_instance.web["a\\nb"]', createSerial: 2n, deleteSerial: 10n },
    { address: 'aws_instance.web["a\\nb"]', createSerial: 10n, schemaVersion: 3 },
  ],
};
