/**
 * @file Runs before Altair does: nothing of a session is kept in the browser, except the token, and that only until the
 * tab is closed and if asked. The token, the archive to import and the archive to download have their places in the bar,
 * so that none of them becomes part of what Altair stores, shows or shares.
 */
import './memory/auto/index.mjs';

const TOKEN_KEY = 'state-archive-token';
const ENDPOINT = new URL('/graphql', location.origin).href;

const keeper = window.sessionStorage;
for (const name of ['localStorage', 'sessionStorage']) {
  Object.defineProperty(window, name, { value: memoryStorage() });
}

const [token, keep, whose, file, download] = ['token', 'keep', 'whose', 'file', 'download'].map((id) =>
  document.getElementById(id),
);

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

const send = window.fetch.bind(window);
window.fetch = async (resource, init = {}) => {
  const isQuery = init.method === 'POST' && new URL(resource, location.origin).href === ENDPOINT;
  if (!isQuery) return send(resource, init);
  const headers = new Headers(init.headers);
  if (bearer() !== '' && !headers.has('authorization')) headers.set('authorization', `Bearer ${bearer()}`);
  let { body } = init;
  if (typeof body === 'string' && wantsFile(JSON.parse(body))) {
    const [archive] = file.files;
    if (archive === undefined)
      return answer('Choose the archive to import in the bar above, then send again.');
    body = withFile(JSON.parse(body), archive);
    headers.delete('content-type');
  }
  const response = await send(resource, { ...init, headers, body });
  offerDownload(await response.clone().text());
  return response;
};

/** The token as it goes into the header, whichever way it was copied. */
function bearer() {
  return token.value.trim().replace(/^(Authorization:\s*)?Bearer\s+/i, '');
}

/** Whether the document declares `$file` and nothing was chosen for it in Altair's own way. */
function wantsFile({ query, variables }) {
  return /\$file\s*:\s*Upload\b/.test(query ?? '') && !variables?.file;
}

/** A multipart request, as the GraphQL multipart request specification describes. */
function withFile(operations, archive) {
  const form = new FormData();
  form.set(
    'operations',
    JSON.stringify({ ...operations, variables: { ...operations.variables, file: null } }),
  );
  form.set('map', '{"0":["variables.file"]}');
  form.set('0', archive, archive.name);
  return form;
}

function answer(message) {
  return new Response(JSON.stringify({ errors: [{ message }] }), {
    headers: { 'content-type': 'application/json' },
  });
}

/** Shows the links of an answer that lead to an archive, the first one of them. */
function offerDownload(text) {
  const archive = text.includes('"downloadUrl"') ? findArchive(JSON.parse(text)) : undefined;
  if (archive === undefined) return;
  const link = document.createElement('a');
  link.href = archive.downloadUrl;
  link.rel = 'noreferrer';
  link.textContent = `Download ${archive.fileName ?? 'the archive'}`;
  download.replaceChildren(link);
}

function findArchive(value) {
  if (typeof value !== 'object' || value === null) return undefined;
  if (typeof value.downloadUrl === 'string') return value;
  for (const member of Object.values(value)) {
    const found = findArchive(member);
    if (found !== undefined) return found;
  }
  return undefined;
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
