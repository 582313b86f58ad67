import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { readArchiveFile } from '../../src/archive/archive-file.ts';
import { verifyArchive } from '../../src/archive/reader.ts';
import { TRUST_NOBODY } from '../../src/archive/signing-keys.ts';
import { unseal } from '../../src/archive/unseal.ts';
import { readConfig } from '../../src/config.ts';
import type { Caller } from '../../src/history/states.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  nothingUnderWay,
  openBackend,
  refusalOf,
  runExport,
  runImport,
  storedFiles,
} from './support/backend.ts';
import { post } from './support/histories.ts';

const path = temporaryDirectory();
const [document = ''] = loadTerraformHistory().map(({ document }) => document);
let backend: Backend;
let owner: Caller;
let page: string;

beforeAll(async () => {
  backend = await openBackend();
  owner = await createCaller(backend);
  await post(backend.database, owner, 'prod/network', document);
  page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
});
beforeEach(() => set({ signer: null, trust: TRUST_NOBODY, recipients: [] }));
afterAll(() => backend.close());

/** Gives the backend other settings, as a restart does. */
function set(settings: Partial<Pick<Backend['services'], 'signer' | 'trust' | 'recipients'>>): void {
  Object.assign(backend.services, settings);
}

/** Has the backend started anew with these variables. */
function restart(variables: Readonly<Record<string, string>>): void {
  const { archiveSigner: signer, archiveTrust: trust, archiveRecipients: recipients } = readConfig(variables);
  set({ signer, trust, recipients });
}

async function exported(): Promise<string> {
  return archivePath(backend, await runExport(backend, owner, 'prod/network'));
}

async function imported(file: string, options: { dryRun?: boolean } = {}) {
  return runImport(backend, await createCaller(backend), file, options);
}

/** The commands under a heading of docs/operations.md, by what they have in them. */
function commandsOf(heading: string, content: string): string {
  const section = page.split(/^## /m).find((each) => each.startsWith(heading)) ?? '';
  const commands = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, script = '']) => script);
  const found = commands.find((script) => script.includes(content));
  if (found === undefined) throw new Error(`docs/operations.md says nothing of ${content}.`);
  return found;
}

/** The variables that commands of the page leave set. */
function variablesAfter(script: string): Record<string, string> {
  const printed = execFileSync('bash', ['-euc', `${script}\nenv -0`], {
    cwd: path(),
    env: { PATH: process.env.PATH },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const all = printed.split('\0').map((line) => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)] as const;
  });
  return Object.fromEntries(all.filter(([name]) => /^(ARCHIVE_|REQUIRE_)/.test(name)));
}

const made = commandsOf.bind(null, 'Signing archives', 'genpkey');
const trusted = commandsOf.bind(null, 'Signing archives', 'REQUIRE_SIGNATURE');
const replaced = commandsOf.bind(null, 'Signing archives', 'new-key');

test('the procedure of docs/operations.md replaces a key, and archives of both keys are imported meanwhile and after', async () => {
  const exporter = variablesAfter(made());
  const importer = variablesAfter(trusted());
  variablesAfter(made().replaceAll('signing-key', 'new-key'));
  const after = variablesAfter(replaced());
  expect(importer.REQUIRE_SIGNATURE).toBe('true');

  restart(exporter);
  const oldKey = backend.services.signer?.keyId;
  const ofOld = await exported();
  restart(importer);
  await expect(imported(ofOld)).resolves.toMatchObject({
    status: 'SUCCEEDED',
    report: { signature: { verified: true, keyIds: [oldKey] }, warnings: [] },
  });

  // What is imported is told the new key before anything is signed with it.
  const { ARCHIVE_VERIFICATION_KEYS = '', ARCHIVE_SIGNING_KEY = '' } = after;
  const both = { ...importer, ARCHIVE_VERIFICATION_KEYS };
  restart({ ARCHIVE_SIGNING_KEY });
  const newKey = backend.services.signer?.keyId;
  const ofNew = await exported();
  restart(importer);
  expect(await refusalOf(imported(ofNew))).toMatchObject({ code: 'SIGNATURE_REQUIRED' });
  restart(both);
  for (const [file, keyId] of [
    [ofOld, oldKey],
    [ofNew, newKey],
  ] as const) {
    await expect(imported(file)).resolves.toMatchObject({
      status: 'SUCCEEDED',
      report: { signature: { verified: true, keyIds: [keyId] } },
    });
  }
});

test('an import where signatures are required refuses what is not signed, before anything is written', async () => {
  const plain = await exported();
  restart(variablesAfter(`${made()}\n${trusted()}`));
  await nothingUnderWay(backend);
  const before = await storedFiles(backend);
  for (const dryRun of [true, false]) {
    expect(await refusalOf(imported(plain, { dryRun }))).toMatchObject({
      code: 'SIGNATURE_REQUIRED',
      message: expect.stringContaining('ARCHIVE_VERIFICATION_KEYS'),
      path: ['input', 'file'],
    });
  }
  await nothingUnderWay(backend);
  expect(await storedFiles(backend)).toEqual(before);
});

test('a dry run and an import tell who has signed that nobody here knows', async () => {
  restart(variablesAfter(made()));
  const keyId = backend.services.signer?.keyId;
  const file = await exported();
  restart({});
  for (const dryRun of [true, false]) {
    await expect(imported(file, { dryRun })).resolves.toMatchObject({
      status: 'SUCCEEDED',
      report: {
        signature: { verified: false, keyIds: [keyId] },
        warnings: [{ code: 'ATTESTATION_NOT_VERIFIED', message: expect.stringContaining(`${keyId}`) }],
      },
    });
  }
});

describe('an export that is sealed', () => {
  let mine: string;
  let theirs: string;
  beforeAll(async () => {
    [mine, theirs] = [await generateX25519Identity(), await generateX25519Identity()];
  });

  /** The archive inside a file, opened with a key. */
  async function openedWith(file: string, key: string) {
    const pieces: Uint8Array[] = [];
    for await (const piece of unseal(readArchiveFile(file), { keys: [key] })) pieces.push(piece);
    await writeFile(path('opened.klstate'), Buffer.concat(pieces));
    return verifyArchive(path('opened.klstate'));
  }

  test('is told by its digest, length and name as it is kept and downloaded, and by its history as it is inside', async () => {
    restart({ ARCHIVE_AGE_RECIPIENTS: ` ${await identityToRecipient(mine)}, ` });
    const operation = await runExport(backend, owner, 'prod/network');
    const file = archivePath(backend, operation);
    const bytes = await readFile(file);
    expect(bytes.toString('latin1')).toMatch(/^age-encryption\.org\/v1\n/);
    expect(operation.archive).toMatchObject({
      sha256: createHash('sha256').update(bytes).digest('hex'),
      sizeBytes: BigInt(bytes.length),
      fileName: 'prod-network-1.klstate.age',
    });
    expect((await openedWith(file, mine)).historyDigest).toBe(operation.archive?.historyDigest);
    expect(bytes.includes(operation.archive?.historyDigest ?? '')).toBe(false);
    const { rows } = await backend.database.pool.query(
      `select payload->>'recipients' recipients, payload->>'archive_digest' digest from events
       where kind = 'state_export' and payload->>'archive_id' = $1`,
      [operation.id],
    );
    expect(rows).toEqual([
      { recipients: await identityToRecipient(mine), digest: operation.archive?.sha256 },
    ]);
    await nothingUnderWay(backend);
  });

  test('is for the recipients of the service and those it was asked for with, and signed inside', async () => {
    const variables = { ...variablesAfter(made()), ARCHIVE_AGE_RECIPIENTS: await identityToRecipient(mine) };
    restart(variables);
    const recipients = [await identityToRecipient(theirs)];
    const file = archivePath(backend, await runExport(backend, owner, 'prod/network', { recipients }));
    for (const key of [mine, theirs]) {
      expect((await openedWith(file, key)).signature?.keyIds).toEqual([backend.services.signer?.keyId]);
    }
  });

  test('tells the digest of its history without a key when it was asked to', async () => {
    const recipients = [await identityToRecipient(theirs)];
    const asked = { recipients, discloseHistoryDigest: true };
    const operation = await runExport(backend, owner, 'prod/network', asked);
    const head = (await readFile(archivePath(backend, operation))).toString('latin1');
    expect(head).toContain(
      `\n-> kilolock-state-archive/history-digest ${operation.archive?.historyDigest}\n`,
    );
  });

  test('is not imported by the service, which has no key, and says what to do', async () => {
    const recipients = [await identityToRecipient(theirs)];
    const file = archivePath(backend, await runExport(backend, owner, 'prod/network', { recipients }));
    await nothingUnderWay(backend);
    const before = await storedFiles(backend);
    expect(await refusalOf(imported(file))).toMatchObject({
      code: 'ARCHIVE_ENCRYPTED',
      message: expect.stringContaining('age --decrypt'),
      path: ['input', 'file'],
    });
    await nothingUnderWay(backend);
    expect(await storedFiles(backend)).toEqual(before);
    await openedWith(file, theirs);
    await expect(imported(path('opened.klstate'))).resolves.toMatchObject({ status: 'SUCCEEDED' });
  });

  test('is another request than one for others', async () => {
    const recipients = [await identityToRecipient(theirs)];
    const asked = { idempotencyKey: 'sealed', recipients };
    const first = await runExport(backend, owner, 'prod/network', asked);
    expect((await runExport(backend, owner, 'prod/network', asked)).id).toBe(first.id);
    for (const other of [{ recipients: [] }, { discloseHistoryDigest: true }]) {
      const another = runExport(backend, owner, 'prod/network', { ...asked, ...other });
      expect(await refusalOf(another)).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    }
  });

  test('is for recipients alone, and not for more than there may be', async () => {
    const one = await identityToRecipient(theirs);
    for (const recipients of [['hunter2'], [theirs], [one, ''], Array.from({ length: 17 }, () => one)]) {
      const refusal = await refusalOf(runExport(backend, owner, 'prod/network', { recipients }));
      expect(refusal).toMatchObject({ code: 'INVALID_INPUT', path: ['input', 'recipients'] });
      expect(refusal.message).not.toContain(theirs);
    }
  });
});
