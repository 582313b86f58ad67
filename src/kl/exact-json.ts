/** A number as it is spelled: none goes through a double. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON, with numbers as they are spelled. */
export type ExactJson =
  | null
  | boolean
  | string
  | ExactNumber
  | readonly ExactJson[]
  | { readonly [key: string]: ExactJson };

/** Parses JSON that is known to be good. */
export function parseExactly(text: string): ExactJson {
  const revive = (_key: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? new ExactNumber(context?.source ?? String(value)) : value;
  return JSON.parse(text, revive);
}

/** Whether a value is an object of JSON. */
export function isJsonObject(value: ExactJson | undefined): value is { readonly [key: string]: ExactJson } {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  );
}
