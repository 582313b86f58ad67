import { createHash, randomUUID } from 'node:crypto';
import { copyFile, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type BrowserContext, chromium, type Page, type Request } from 'playwright-core';
import { loadSampleHistory } from '../../src/development/sample-history.ts';
import { findBrowser, HOW_TO_GET_A_BROWSER } from '../support/browser.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** What each job looked like, for people to look at; two of them stand in the README, taken over by UPDATE_DOCS=1. */
const PICTURES = fileURLToPath(new URL('../../coverage/playground/', import.meta.url));
const VIEWPORT = { width: 1360, height: 760 };
const IN_README = { '3-export': 'playground-export', '4-dry-run': 'playground-dry-run' } as const;

const MEBIBYTE = 1024 * 1024;
const OTHER_ENVIRONMENT = '4d3d2cf0-5c0e-4f0c-9d5b-6f6f0a4b8a11';

const browser = findBrowser();
const suite = browser === undefined ? describe.skip : describe;
const title = 'the playground, in a browser';

suite(browser === undefined ? `${title} (${HOW_TO_GET_A_BROWSER})` : title, () => {
  let service: TestService;
  let directory: string;
  let context: BrowserContext;
  let elsewhere: string[];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'state-archive-playground-'));
    service = await startTestService({ PLAYGROUND: 'true' });
    await loadSampleHistory(service.database);
    context = await chromium.launchPersistentContext(join(directory, 'profile'), {
      ...(browser !== undefined && { executablePath: browser }),
      // The sandbox of Chromium does not start as root, where CI runs; nothing of a stranger's is opened here.
      args: ['--no-sandbox'],
      viewport: VIEWPORT,
    });
    context.setDefaultTimeout(300_000);
    elsewhere = [];
    context.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== service.url)
        elsewhere.push(request.url());
    });
  });
  afterAll(async () => {
    await context.close();
    await service.stop();
    await rm(directory, { recursive: true });
  });

  /** The playground as it is when it has just been opened, with a token in its place. */
  async function open(script = ''): Promise<Page> {
    const page = await context.newPage();
    await page.addInitScript(script);
    await page.goto(`${service.url}/playground`);
    await page.getByText('Who did what').first().waitFor();
    await page.getByLabel('Token').fill(await service.token());
    return page;
  }

  /** Turns to a tab, sends what is in it, and waits for the answer and for its picture. */
  async function send(page: Page, tab: string, edit?: (page: Page) => Promise<void>) {
    await page.locator('.window-switcher__item', { hasText: tab }).click();
    const shown = page.locator('app-window:visible');
    await edit?.(page);
    const answered = page.waitForResponse((response) => isOfTab(response.request()));
    await shown.getByRole('button', { name: 'Send Request' }).click();
    const answer = await (await answered).json();
    await shown.locator('app-query-result').getByText('"data"').waitFor();
    return answer;
  }

  /** Whether somebody asked for it, and not the page by itself. */
  function isOfTab(request: Request): boolean {
    const isQuery = request.url().endsWith('/graphql');
    return isQuery && !/IntrospectionQuery|stageStateArchiveUpload/.test(request.postData() ?? '');
  }

  /** As a person does: a word of the document is marked, and another typed over it. */
  async function overwrite(page: Page, word: string, other: string): Promise<void> {
    const editor = page.locator('app-window:visible app-query-editor');
    await editor.getByText(word, { exact: true }).dblclick();
    await page.keyboard.type(other);
  }

  const allowSharedLineage = (page: Page) => overwrite(page, 'false', 'true');

  async function picture(page: Page, name: string): Promise<void> {
    const path = join(PICTURES, `${name}.png`);
    await page.screenshot({ path });
    const place = name in IN_README && IN_README[name as keyof typeof IN_README];
    if (place && process.env.UPDATE_DOCS === '1')
      await copyFile(path, new URL(`../../docs/images/${place}.png`, import.meta.url));
  }

  test('every job of support is done in its tab, down to the file that is downloaded and restored', async () => {
    const page = await open();

    const found = await send(page, 'Find a state');
    expect(found.data.stateArchives.nodes).toMatchObject([
      { name: 'demo/network', status: { versionCount: 10 } },
    ]);
    await picture(page, '1-find');

    const preview = await send(page, 'Preview history');
    const { historyDigest } = preview.data.stateArchive.manifest;
    expect(preview.data.stateArchive).toMatchObject({ versions: { totalCount: 10 }, tags: [{}, {}] });
    await picture(page, '2-preview');

    const exported = await send(page, 'Export, download');
    const { archive } = exported.data.exportStateArchive.operation;
    expect(archive).toMatchObject({ historyDigest });
    await picture(page, '3-export');
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: `Download ${archive.fileName}` }).click();
    const file = join(directory, archive.fileName);
    await (await downloading).saveAs(file);
    expect(sha256(await readFile(file))).toBe(archive.sha256);

    await page.locator('.window-switcher__item', { hasText: 'Dry-run import' }).click();
    await page.locator('app-window:visible').getByRole('button', { name: 'Send Request' }).click();
    await page.getByText('Choose the archive to import in the bar above').waitFor();
    await page.getByLabel('Archive to import').setInputFiles(file);
    const refused = await send(page, 'Dry-run import');
    expect(refused.data.importStateArchive.userErrors).toMatchObject([{ code: 'LINEAGE_IN_USE' }]);
    const dryRun = await send(page, 'Dry-run import', allowSharedLineage);
    expect(dryRun.data.importStateArchive).toMatchObject({
      operation: {
        status: 'SUCCEEDED',
        report: { versionCount: 10, historyDigest },
      },
      userErrors: [],
    });
    await picture(page, '4-dry-run');

    const restored = await send(page, 'Import as', allowSharedLineage);
    expect(restored.data.importStateArchive.operation).toMatchObject({
      status: 'SUCCEEDED',
      stateArchive: { name: 'demo/restored', manifest: { historyDigest } },
    });
    await picture(page, '5-import');

    const watched = await send(page, 'Watch operations');
    expect(watched.data.stateArchiveOperations.nodes).toMatchObject([
      { kind: 'IMPORT', name: 'demo/restored', status: 'SUCCEEDED', progress: { versionsDone: 10 } },
      { kind: 'IMPORT', status: 'SUCCEEDED' },
      { kind: 'EXPORT', name: 'demo/network', status: 'SUCCEEDED' },
    ]);
    await picture(page, '6-watch');

    const who = await send(page, 'Who did what');
    expect(who.data.stateArchiveOperations.nodes[0]).toMatchObject({ actor: 'alice@test', kind: 'IMPORT' });
    expect(who.data.stateArchive.versions.nodes[0]).toMatchObject({ createdBy: 'alice@example.com' });
    await picture(page, '7-who-did-what');

    await expectHidden(page, /donat|sponsor|account|log in|sign in/i);
    expect(elsewhere).toEqual([]);
    await page.close();
  });

  test('an archive larger than a part is sent in parts, and goes on where the connection was cut', async () => {
    const page = await open(CUT_THE_FIRST_PART);
    const noArchive = join(directory, 'large.klstate');
    await writeFile(noArchive, '');
    await truncate(noArchive, 33 * MEBIBYTE);
    await page.getByLabel('Archive to import').setInputFiles(noArchive);
    const answer = await send(page, 'Dry-run import');
    expect(await page.evaluate('sent')).toEqual([
      ['PATCH', '0'],
      ['HEAD', null],
      ['PATCH', '0'],
      ['PATCH', String(32 * MEBIBYTE)],
    ]);
    // It is there, whole and as announced, and then it is looked into.
    expect(answer.data.importStateArchive.userErrors).toMatchObject([{ code: 'ARCHIVE_UNSUPPORTED_FORMAT' }]);
    await page.close();
  });

  test('what every tab needs is asked for once, and an environment that is filled in goes along with each', async () => {
    const page = await context.newPage();
    const asked: Request[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/graphql')) asked.push(request);
    });
    await page.goto(`${service.url}/playground`);
    await page.getByText('Who did what').first().waitFor();
    await page.getByLabel('Token').fill(await service.token());
    await page.getByText('Your own environment').click();
    await page.getByLabel('Workspace id').fill(randomUUID());
    await page.getByLabel('Environment id').fill(` ${OTHER_ENVIRONMENT} `);
    await page.getByText(`Environment ${OTHER_ENVIRONMENT}`).waitFor();
    const { data } = await send(page, 'Find a state');
    expect(data.stateArchives.nodes).toEqual([]);
    await page.getByText('Reason, for the record').waitFor({ state: 'hidden' });
    const [schema, find] = asked.map((request) => request.postDataJSON());
    expect(schema.query).toContain('IntrospectionQuery');
    expect(find.variables.scope).toEqual({
      workspaceId: expect.any(String),
      environmentId: OTHER_ENVIRONMENT,
    });
    expect(asked).toHaveLength(2);
    await page.close();
  });

  test('a token is gone with a reload unless it is asked to stay, and nothing else of a session is kept', async () => {
    const page = await open();
    const token = await page.getByLabel('Token').inputValue();
    await send(page, 'Export, download');
    expect(await keptBy(page)).toEqual({ databases: [], local: 0, session: 0, cookies: '' });

    await page.reload();
    expect(await page.getByLabel('Token').inputValue()).toBe('');
    await page.getByLabel('Token').fill(`Bearer ${token}`);
    await page.getByLabel('keep for this tab').check();
    await page.reload();
    expect(await page.getByLabel('Token').inputValue()).toBe(token);
    expect(await keptBy(page)).toEqual({ databases: [], local: 0, session: 1, cookies: '' });

    await page.getByLabel('keep for this tab').uncheck();
    expect(await keptBy(page)).toEqual({ databases: [], local: 0, session: 0, cookies: '' });
    expect(elsewhere).toEqual([]);
    await page.close();
  });
});

async function expectHidden(page: Page, words: RegExp): Promise<void> {
  expect(await page.getByText(words).filter({ visible: true }).allTextContents()).toEqual([]);
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** A script that notes what is sent of an upload, and fails the first part of it as a connection does that is cut. */
const CUT_THE_FIRST_PART = `
  const { fetch } = window;
  window.sent = [];
  window.fetch = (resource, init) => {
    if (['PATCH', 'HEAD'].includes(init?.method)) sent.push([init.method, new Headers(init.headers).get('upload-offset')]);
    return sent.length === 1 && init?.method === "PATCH" ? Promise.reject(new TypeError('network error')) : fetch(resource, init);
  };
`;

/** What the browser itself has stored for the page: a frame has stores that the page has not replaced. */
function keptBy(page: Page): Promise<unknown> {
  return page.evaluate(`(async () => {
    const frame = document.body.appendChild(document.createElement('iframe'));
    const { indexedDB, localStorage, sessionStorage } = frame.contentWindow;
    const kept = {
      databases: await indexedDB.databases(),
      local: localStorage.length,
      session: sessionStorage.length,
      cookies: document.cookie,
    };
    frame.remove();
    return kept;
  })()`);
}
