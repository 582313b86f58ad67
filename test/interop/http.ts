/** An answer, its body read: JSON as what it says, anything else as text, nothing as null. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Sends one request; whatever the status, it is an answer. A body that is no text goes as JSON. */
export async function send(
  method: string,
  url: string,
  options: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Answer> {
  const { body, headers } = options;
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: parse(text) };
}

function parse(text: string): unknown {
  if (text.trim() === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
