import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { ArchiveError } from '../../../src/archive/errors.ts';
import { MEMBER } from '../../../src/archive/format.ts';
import { verdict } from '../../archive/support/handmade.ts';
import { type Choices, choices } from '../../support/choices.ts';
import type { FuzzTarget } from '../target.ts';
import { openImportVerdicts } from './import-verdicts.ts';
import { damagedBytes, damagedJson, oddJson } from './odd-json.ts';

/** A member of a tar: its header as it stands, and its contents. */
interface Member {
  name: string;
  header: Buffer;
  data: Buffer;
}

const BLOCK = 512;
const GOLDEN = zstdDecompressSync(readFileSync(new URL('../../archive/golden/v1.klstate', import.meta.url)));

function membersOf(tar: Buffer): Member[] {
  const members: Member[] = [];
  for (let at = 0; tar[at] !== 0 && at < tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    const size = Number.parseInt(header.toString('latin1', 124, 135), 8);
    members.push({
      name: header.toString('latin1', 0, 100).replace(/\0.*/s, ''),
      header,
      data: tar.subarray(at + BLOCK, at + BLOCK + size),
    });
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return members;
}

function tarOf(members: readonly Member[], keepHeaders: boolean): Buffer {
  const blocks = members.flatMap(({ name, header, data }) => [
    keepHeaders ? header : headerFor(header, name, data.length),
    data,
    Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK),
  ]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

/** The header with this name and size, and a right checksum. */
function headerFor(header: Buffer, name: string, size: number): Buffer {
  const made = Buffer.from(header);
  made.fill(0, 0, 100).write(name.slice(0, 100), 0, 'latin1');
  made.write(`${size.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
  made.fill(' ', 148, 156);
  const sum = made.reduce((total, byte) => total + byte, 0);
  made.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return made;
}

function build(choice: Choices): Buffer {
  let members = membersOf(GOLDEN);
  for (const _ of choice.some(3, () => null)) members = damagedMembers(members, choice);
  if (!choice.once(8)) members = summed(members);
  let tar = tarOf(members, choice.once(12));
  if (choice.once(10)) tar = damagedBytes(tar, choice);
  return choice.once(10) ? damagedBytes(packed(tar, choice), choice) : packed(tar, choice);
}

function packed(tar: Buffer, choice: Choices): Buffer {
  switch (choice.below(12)) {
    case 9:
      return gzipSync(tar);
    case 10:
      return tar;
    case 11: {
      const at = choice.below(tar.length);
      return Buffer.concat([zstdCompressSync(tar.subarray(0, at)), zstdCompressSync(tar.subarray(at))]);
    }
    default:
      return zstdCompressSync(tar);
  }
}

function damagedMembers(members: readonly Member[], choice: Choices): Member[] {
  const index = choice.below(members.length);
  const member = choice.of(members);
  const others = (change: (member: Member) => Member) =>
    members.map((each) => (each === member ? change({ ...each }) : each));
  switch (choice.below(9)) {
    case 1:
      return others((each) => ({ ...each, data: damagedLines(each.data, choice) }));
    case 2:
      return others((each) => ({ ...each, data: damagedBytes(each.data, choice) }));
    case 3:
      return members.filter((each) => each !== member);
    case 4:
      return members.toSpliced(index, 0, member);
    case 5:
      return others((each) => ({
        ...each,
        name: choice.of([
          '',
          '../x',
          './a',
          '/etc',
          'versions/01.tfstate.json',
          'x',
          MEMBER.attestation,
          each.name.toUpperCase(),
        ]),
      }));
    case 6:
      return others((each) => {
        const header = Buffer.from(each.header);
        header[choice.of([100, 108, 116, 136, 156, 157, 257, 263, 265, 345, 500, choice.below(BLOCK)])] =
          choice.of([0x30, 0x31, 0x32, 0x35, 0x4c, 0x78, 0x67, 0, 0xff]);
        return { ...each, header };
      });
    case 7:
      return others((each) => ({ ...each, data: Buffer.from(oddJson(choice)) }));
    default:
      return others((each) => ({ ...each, data: Buffer.from(damagedJson(each.data.toString(), choice)) }));
  }
}

/** Lines that are gone, there twice, exchanged or other JSON. */
function damagedLines(data: Buffer, choice: Choices): Buffer {
  const lines = data.toString().split('\n');
  const at = choice.below(lines.length);
  const line = lines[at] ?? '';
  switch (choice.below(4)) {
    case 1:
      return Buffer.from(lines.toSpliced(at, 1).join('\n'));
    case 2:
      return Buffer.from(lines.toSpliced(at, 0, line).join('\n'));
    case 3:
      return Buffer.from(lines.toSpliced(at, 1).toSpliced(choice.below(lines.length), 0, line).join('\n'));
    default:
      return Buffer.from(lines.with(at, damagedJson(line, choice)).join('\n'));
  }
}

function summed(members: readonly Member[]): Member[] {
  const sums = members
    .filter(({ name }) => name !== MEMBER.sums && name !== MEMBER.attestation)
    .map(({ name, data }) => `${createHash('sha256').update(data).digest('hex')}  ${name}\n`)
    .join('');
  return members.map((member) =>
    member.name === MEMBER.sums ? { ...member, data: Buffer.from(sums) } : member,
  );
}

/**
 * Archives, damaged in their bytes, tar headers, members and metadata: read, or refused by an ArchiveError and nothing
 * else; and what is read, the dry run and the import speak of in the same words.
 */
export const archiveTarget: FuzzTarget<Buffer> = {
  name: 'archive',
  inputs: choices(60).map(build),
  encode: (input) => input,
  decode: (file) => file,
  runsInSuite: 60,
  async open() {
    const verdicts = await openImportVerdicts();
    return {
      async check(archive) {
        try {
          await verdict(archive, {}, 1 + (archive.length % 9000));
        } catch (error) {
          if (error instanceof ArchiveError) return;
          throw error;
        }
        await writeFile(verdicts.path, archive);
        await verdicts.verdict();
      },
      close: () => verdicts.close(),
    };
  },
};
