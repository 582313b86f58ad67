import { createHash } from 'node:crypto';
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { extract, type Headers, pack } from 'tar-stream';
import { type ArchiveLimits, DEFAULT_ARCHIVE_LIMITS, MEMBER } from '../../../src/archive/format.ts';
import { type ReadOptions, readArchive, type VerifiedArchive } from '../../../src/archive/reader.ts';
import { each } from './build-archive.ts';

/** A member of an archive taken apart: put together again by a tar of another make than the project's. */
export interface HandmadeMember {
  name: string;
  data: Buffer;
  /** Further fields of the tar header. */
  header?: Partial<Headers> & { readonly pax?: Readonly<Record<string, string>> };
}

/** The tar inside an archive. */
export function tarOf(archive: Uint8Array): Buffer {
  return zstdDecompressSync(archive);
}

/** The members of an archive. */
export async function takeApart(archive: Uint8Array): Promise<HandmadeMember[]> {
  const members: HandmadeMember[] = [];
  const tar = extract();
  tar.end(tarOf(archive));
  for await (const entry of tar) {
    members.push({ name: entry.header.name, data: await joined(entry) });
  }
  return members;
}

/** The members with SHA256SUMS made to agree with them. */
export function summed(members: readonly HandmadeMember[]): HandmadeMember[] {
  const covered = members.filter(({ name }) => name !== MEMBER.sums && name !== MEMBER.attestation);
  const sums = covered.map(({ name, data }) => `${sha256(data)}  ${name}\n`).join('');
  return members.map((member) =>
    member.name === MEMBER.sums ? { ...member, data: Buffer.from(sums) } : member,
  );
}

/** A tar of the members, as they are. */
export async function tarred(members: readonly HandmadeMember[]): Promise<Buffer> {
  const tar = pack();
  for (const { name, data, header } of members) tar.entry({ name, size: data.length, ...header }, data);
  tar.finalize();
  return joined(tar);
}

/** A tar in one zstd frame. */
export function zstd(tar: Uint8Array): Buffer {
  return zstdCompressSync(tar);
}

/** A tar in one gzip member. */
export function gzip(tar: Uint8Array): Buffer {
  return gzipSync(tar);
}

/** Members with one of them changed. */
export function withMember(
  members: readonly HandmadeMember[],
  name: string,
  change: (data: Buffer) => string | Uint8Array,
): HandmadeMember[] {
  return members.map((member) =>
    member.name === name ? { ...member, data: Buffer.from(change(member.data)) } : member,
  );
}

/** Values to put into JSON, by the path they belong at (`versions.0.serial`); undefined takes one away. */
export type Changes = Readonly<Record<string, unknown>>;

/** Members with the JSON of one of them changed. */
export function withJson(
  members: readonly HandmadeMember[],
  name: string,
  changes: Changes,
): HandmadeMember[] {
  return withMember(
    members,
    name,
    (data) => `${JSON.stringify(changed(data.toString(), changes), null, 2)}\n`,
  );
}

/** JSON text, parsed and changed. */
export function changed(json: string, changes: Changes): unknown {
  const value: unknown = JSON.parse(json);
  for (const [path, replacement] of Object.entries(changes)) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    const parent = keys.reduce<unknown>((within, key) => Reflect.get(Object(within), key), value);
    Reflect.set(Object(parent), last, replacement);
  }
  return value;
}

/** Reads an archive held in memory to its end, handing it over in chunks of this size. */
export async function verdict(
  archive: Uint8Array,
  limits: Partial<ArchiveLimits> = {},
  chunkSize = 1000,
  options: Pick<ReadOptions, 'trust' | 'redacted'> = {},
): Promise<VerifiedArchive> {
  const members = readArchive(chunked(archive, chunkSize), {
    ...options,
    limits: { ...DEFAULT_ARCHIVE_LIMITS, ...limits },
  });
  for (;;) {
    const next = await members.next();
    if (next.done) return next.value;
  }
}

export function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** tar-stream does not say in its types that its streams yield buffers. */
async function joined(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) {
    if (piece instanceof Uint8Array) pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function chunked(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  const count = Math.ceil(bytes.length / size);
  return each(Array.from({ length: count }, (_, index) => bytes.subarray(index * size, (index + 1) * size)));
}
