/**
 * @file Runs before Altair does: nothing of a session is kept in the browser, except the token, and that only until the
 * tab is closed and if asked. The token, the environment, the archive to import and the archive to download have their places
 * in the bar, so that none of them becomes part of what Altair stores, shows or shares.
 */
import './memory/auto/index.mjs';
import { NotSent, StagedArchive } from './upload.js';

const TOKEN_KEY = 'state-archive-token';
const ENDPOINT = new URL('/graphql', location.origin).href;

const keeper = window.sessionStorage;
for (const name of ['localStorage', 'sessionStorage']) {
  Object.defineProperty(window, name, { value: memoryStorage() });
}

const places = [...document.querySelectorAll('header [id]')].map((element) => [element.id, element]);
const { token, keep, whose, scope, file, progress, download } = Object.fromEntries(places);

token.value = keeper.getItem(TOKEN_KEY) ?? '';
keep.checked = token.value !== '';
tellWhose();
for (const input of [token, keep]) {
  input.addEventListener('input', () => {
    if (keep.checked && token.value !== '') keeper.setItem(TOKEN_KEY, bearer());
    else keeper.removeItem(TOKEN_KEY);
    tellWhose();
  });
}
scope.addEventListener('input', () => {
  const { environmentId } = chosenScope() ?? {};
  scope.querySelector('summary').textContent =
    environmentId === undefined ? 'Your own environment' : `Environment ${environmentId}`;
});
document.addEventListener('pointerdown', ({ target }) => {
  if (!scope.contains(target)) scope.open = false;
});

const send = window.fetch.bind(window);
window.fetch = async (resource, init = {}) => {
  const isQuery = init.method === 'POST' && new URL(resource, location.origin).href === ENDPOINT;
  if (!isQuery) return send(resource, init);
  const headers = new Headers(init.headers);
  if (bearer() !== '' && !headers.has('authorization')) headers.set('authorization', `Bearer ${bearer()}`);
  const request = { ...init, headers };
  // A file of Altair's own goes along as it is.
  if (typeof init.body !== 'string') return send(resource, request);
  if (init.body.includes('IntrospectionQuery')) return askForSchema(resource, request);
  return askForPerson(resource, request);
};

const schemas = new Map();

/** What every tab asks for when it opens is asked for once for all of them. */
async function askForSchema(resource, { signal: _signal, ...request }) {
  const asked = schemas.get(request.body) ?? send(resource, request);
  schemas.set(request.body, asked);
  const forget = () => schemas.delete(request.body);
  const response = await asked.catch((error) => {
    forget();
    throw error;
  });
  if (!response.ok) forget();
  return response.clone();
}

/** Sends what stands in a tab, with what the bar has for it. */
async function askForPerson(resource, request) {
  const operation = JSON.parse(request.body);
  const variables = { ...operation.variables };
  const wants = (name) =>
    new RegExp(`\\$${name}\\s*:`).test(operation.query ?? '') && variables[name] === undefined;
  if (wants('scope') && chosenScope() !== undefined) variables.scope = chosenScope();
  const ask = async (asked, signal) =>
    (await send(resource, { ...request, body: JSON.stringify(asked), signal })).json();
  const tell = (words) => {
    progress.textContent = words;
  };

  let staged;
  if (wants('uploadId')) {
    const [archive] = file.files;
    if (archive === undefined)
      return answer('Choose the archive to import in the bar above, then send again.');
    try {
      staged = await StagedArchive.send(archive, {
        scope: variables.scope,
        ask,
        tell,
        signal: request.signal,
      });
    } catch (error) {
      if (error instanceof NotSent) return answer(error.message);
      throw error;
    } finally {
      tell('');
    }
    variables.uploadId = staged.id;
  }
  const response = await send(resource, { ...request, body: JSON.stringify({ ...operation, variables }) });
  const text = await response.clone().text();
  // What was refused before there was an operation would wait for another try that never comes.
  staged?.discard();
  offerDownload(text);
  return response;
}

/** The token as it goes into the header, whichever way it was copied. */
function bearer() {
  return token.value.trim().replace(/^(Authorization:\s*)?Bearer\s+/i, '');
}

/** The environment that was filled in; undefined for the caller's own. */
function chosenScope() {
  const given = [...new FormData(scope.querySelector('form'))]
    .map(([name, value]) => [name, value.trim()])
    .filter(([, value]) => value !== '');
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

function answer(message) {
  return new Response(JSON.stringify({ errors: [{ message }] }), {
    headers: { 'content-type': 'application/json' },
  });
}

/** Shows the links of an answer that lead to an archive, the first one of them. */
function offerDownload(text) {
  if (!text.includes('"downloadUrl"')) return;
  let archive;
  JSON.parse(text, (_name, value) => {
    if (typeof value?.downloadUrl === 'string') archive ??= value;
    return value;
  });
  if (archive === undefined) return;
  const link = document.createElement('a');
  link.href = archive.downloadUrl;
  link.rel = 'noreferrer';
  link.textContent = `Download ${archive.fileName ?? 'the archive'}`;
  download.replaceChildren(link);
}

/** Says whose token it is and what for, as far as it can be read here: it is the service that verifies it. */
function tellWhose() {
  whose.textContent = '';
  whose.title = '';
  try {
    const [, payload] = bearer().split('.');
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, '+').replace(/_/g, '/')), (c) =>
      c.charCodeAt(0),
    );
    const { sub, scope = '', exp } = JSON.parse(new TextDecoder().decode(bytes));
    const until = exp === undefined ? '' : ` until ${new Date(exp * 1000).toLocaleTimeString()}`;
    whose.textContent = `${sub}${until}`;
    whose.title = [scope].flat().join(' ');
  } catch {
    // Another kind of token, or none.
  }
}

/** A storage that is gone with the page. */
function memoryStorage() {
  const items = new Map();
  return {
    get length() {
      return items.size;
    },
    key: (index) => [...items.keys()][index] ?? null,
    getItem: (key) => items.get(String(key)) ?? null,
    setItem: (key, value) => void items.set(String(key), String(value)),
    removeItem: (key) => void items.delete(String(key)),
    clear: () => items.clear(),
  };
}
