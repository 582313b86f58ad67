/** A table of the report. */
export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** What a reader has to know of it. */
  readonly notes?: readonly string[];
}

/** The table as Markdown. */
export function markdown({ title, head, rows, notes = [] }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  const table = [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
  return [`### ${title}`, table, ...notes].join('\n\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/** Whether a goal is met, in a word. A value that could not be measured misses it. */
export function verdict(isMet: boolean): 'met' | '**missed**' {
  return isMet ? 'met' : '**missed**';
}

/** Bytes in megabytes of a million. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
