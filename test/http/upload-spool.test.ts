import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type FileUpload, spoolUpload } from '../../src/http/upload.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-test-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const uploadOf = async (stream: Readable, filename = 'f'): Promise<FileUpload> => ({
  filename,
  createReadStream: () => stream,
});
const never = new AbortController().signal;

test('the file is written for its owner alone, and described', async () => {
  const path = join(directory, 'spool');
  const upload = uploadOf(Readable.from([Buffer.from('ab'), Buffer.from('c')]), 'C:\\x\\a\u0007.klstate');
  expect(await spoolUpload(upload, path, { maxBytes: 3, signal: never })).toEqual({
    sizeBytes: 3n,
    sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    fileName: 'a.klstate',
  });
  expect(await readFile(path, 'utf8')).toBe('abc');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test('a resolver’s own limit holds, and leaves no file', async () => {
  const upload = uploadOf(Readable.from([Buffer.from('abc')]));
  const spooled = spoolUpload(upload, join(directory, 'spool'), { maxBytes: 2, signal: never });
  await expect(spooled).rejects.toMatchObject({ name: 'UploadTooLargeError', maxBytes: 2 });
  expect(await readdir(directory)).toEqual([]);
});

test('a stream that fails leaves no file', async () => {
  async function* failing(): AsyncGenerator<Buffer> {
    yield Buffer.from('abc');
    throw new Error('cut');
  }
  const spooled = spoolUpload(uploadOf(Readable.from(failing())), join(directory, 'spool'), {
    maxBytes: 100,
    signal: never,
  });
  await expect(spooled).rejects.toThrow('cut');
  expect(await readdir(directory)).toEqual([]);
});

test('a stream that failed before anyone read it is reported as it failed', async () => {
  const stream = new Readable({ read() {} });
  stream.on('error', () => {});
  stream.destroy(new Error('cut early'));
  const spooled = spoolUpload(uploadOf(stream), join(directory, 'spool'), { maxBytes: 100, signal: never });
  await expect(spooled).rejects.toThrow('cut early');
  expect(await readdir(directory)).toEqual([]);
});

test('a request that is given up leaves no file, however far the upload is', async () => {
  const gone = new AbortController();
  const stream = new Readable({ read() {} });
  stream.push('abc');
  const spooled = spoolUpload(uploadOf(stream), join(directory, 'spool'), {
    maxBytes: 100,
    signal: gone.signal,
  });
  gone.abort();
  await expect(spooled).rejects.toMatchObject({ name: 'UploadInterruptedError' });
  expect(stream.destroyed).toBe(true);
  expect(await readdir(directory)).toEqual([]);
});

test('a file that exists is never written over', async () => {
  const path = join(directory, 'spool');
  await writeFile(path, 'mine');
  const stream = Readable.from([Buffer.from('abc')]);
  await expect(spoolUpload(uploadOf(stream), path, { maxBytes: 100, signal: never })).rejects.toMatchObject({
    code: 'EEXIST',
  });
  expect(await readFile(path, 'utf8')).toBe('mine');
  expect(stream.destroyed).toBe(true);
});
