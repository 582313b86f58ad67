import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';

/** What of a run may be looked at by others: one answer, one log line, one row. */
export interface Trace {
  /** Where it was found, for the message of a test that fails. */
  readonly where: string;
  readonly text: string;
}

/** Secrets planted where a run uses them, and the traces that run left. */
export class SecretWatch {
  readonly #secrets = new Map<string, string>();
  readonly #traces: (Trace & { readonly mayHold: ReadonlySet<string> })[] = [];

  /** Makes a secret of this kind, such as `a literal`. */
  plant(kind: string): string {
    return this.add(kind, `planted_${kind.replaceAll(/\W+/g, '_')}_${randomBytes(6).toString('hex')}`);
  }

  /** Watches for a secret that is there already. */
  add(kind: string, secret: string): string {
    if (secret.length < 8) throw new Error(`The secret ${kind} is too short to be told from other text.`);
    this.#secrets.set(secret, kind);
    return secret;
  }

  /** Notes a trace; `mayHold` names the kinds of secret that belong there. */
  note(where: string, text: string, mayHold: readonly string[] = []): void {
    this.#traces.push({ where, text, mayHold: new Set(mayHold) });
  }

  /** `kind in where: excerpt` for every secret that is where it does not belong. */
  leaks(): string[] {
    return this.#hits((trace, kind) => !trace.mayHold.has(kind));
  }

  /** The kinds of secret that were found where they belong: proof that the watch sees. */
  seen(): string[] {
    return [
      ...new Set(
        this.#hits((trace, kind) => trace.mayHold.has(kind)).map((hit) => hit.split(' in ')[0] ?? ''),
      ),
    ];
  }

  #hits(counts: (trace: { readonly mayHold: ReadonlySet<string> }, kind: string) => boolean): string[] {
    return this.#traces.flatMap((trace) =>
      [...this.#secrets].flatMap(([secret, kind]) => {
        const position = spellings(secret)
          .map((spelling) => trace.text.indexOf(spelling))
          .find((found) => found >= 0);
        if (position === undefined || !counts(trace, kind)) return [];
        const excerpt = trace.text.slice(Math.max(0, position - 60), position + secret.length + 20);
        return [`${kind} in ${trace.where}: ${inspect(excerpt)}`];
      }),
    );
  }
}

/** How a secret may be written: plainly, in base64 of either alphabet, in hexadecimal as PostgreSQL prints bytes. */
function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  // Base64 of a part depends on where it stands; without the ends, one of three shifts is in the whole.
  const shifted = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(4, -4),
  );
  return [secret, bytes.toString('hex'), ...shifted.filter((text) => text.length >= 12)];
}
