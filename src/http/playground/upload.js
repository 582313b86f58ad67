/**
 * @file Sends the archive to import ahead of the request that imports it, as docs/uploads.md has it: read a part at a time,
 * however large it is, and going on where a cut connection left it.
 */
import { sha256 } from './hashes/sha2.js';

const PART_BYTES = 32 * 1024 * 1024;
/** How often in a row nothing may come of it. */
const TRIES = 6;
const TUS = { 'tus-resumable': '1.0.0' };

const STAGE = `mutation Stage($input: StageStateArchiveUploadInput!) {
  stageStateArchiveUpload(input: $input) { upload { id url } userErrors { message } }
}`;

/** Why an archive cannot be sent, in words for the person who wants to. */
export class NotSent extends Error {}

/** An archive that is where `importStateArchive` looks for it. */
export class StagedArchive {
  /** What `importStateArchive` takes. */
  id;
  #address;

  constructor({ id, url }) {
    this.id = id;
    // The service may have been told another name of its own than the one that this page was opened under.
    const { pathname, search } = new URL(url);
    this.#address = new URL(pathname + search, location.origin);
  }

  /**
   * Announces a file, and sends it.
   *
   * @param ask sends a GraphQL request, and gives its answer.
   * @param tell is told how far it is, in words.
   * @throws NotSent
   */
  static async send(file, { scope, ask, tell, signal }) {
    const digest = await digestOf(file, tell, signal);
    const input = { byteLength: String(file.size), sha256: digest, fileName: file.name, scope };
    const { data, errors = [] } = await ask({ query: STAGE, variables: { input } }, signal);
    const staged = data?.stageStateArchiveUpload;
    if (!staged?.upload) throw new NotSent([...errors, ...(staged?.userErrors ?? [])][0]?.message);
    const archive = new StagedArchive(staged.upload);
    try {
      await archive.#receive(file, tell, signal);
    } catch (error) {
      archive.discard();
      throw error;
    }
    return archive;
  }

  /** Lets the service forget it, unless an operation uses it. */
  discard() {
    fetch(this.#address, { method: 'DELETE', headers: TUS }).catch(() => {});
  }

  async #receive(file, tell, signal) {
    let sent = 0;
    for (let tries = 0; sent < file.size; ) {
      tell(`Sending ${percent(sent, file.size)}`);
      const before = sent;
      sent = (await this.#sendPart(file, sent, signal)) ?? (await this.#whereItStands(signal)) ?? sent;
      tries = sent > before ? 0 : tries + 1;
      if (tries === TRIES)
        throw new NotSent('The archive could not be sent: the connection was cut again and again.');
      if (tries > 0) await new Promise((resolve) => setTimeout(resolve, 500 * tries));
    }
  }

  /** @returns how many bytes there are then; undefined when that is not known. */
  #sendPart(file, sent, signal) {
    return this.#request(
      {
        method: 'PATCH',
        headers: { ...TUS, 'upload-offset': String(sent), 'content-type': 'application/offset+octet-stream' },
        body: file.slice(sent, sent + PART_BYTES),
        signal,
      },
      // What the connection to a proxy lost is not the service's word.
      (status) => status >= 500 || status === 409,
    );
  }

  #whereItStands(signal) {
    return this.#request({ method: 'HEAD', headers: TUS, signal }, (status) => status >= 500);
  }

  async #request(init, mayPass) {
    let response;
    try {
      response = await fetch(this.#address, init);
    } catch (error) {
      if (init.signal?.aborted) throw error;
      return undefined;
    }
    if (response.ok) return Number(response.headers.get('upload-offset'));
    if (mayPass(response.status)) return undefined;
    const { error } = await response.json().catch(() => ({}));
    throw new NotSent(error?.message ?? `The archive could not be sent: ${response.status}.`);
  }
}

/** The SHA-256 of a file. The browser's own function would want all of it in memory. */
async function digestOf(file, tell, signal) {
  const hash = sha256.create();
  let read = 0;
  for (const reader = file.stream().getReader(); ; ) {
    const { value } = await reader.read();
    signal?.throwIfAborted();
    if (value === undefined) break;
    hash.update(value);
    read += value.length;
    tell(`Reading ${percent(read, file.size)}`);
  }
  return [...hash.digest()].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

const percent = (part, whole) => `${Math.floor((100 * part) / whole)} %`;
