import { readdirSync, readFileSync } from 'node:fs';
import { present } from '../base/invariant.ts';

/** A job of support, which has a tab of the playground. */
export interface Job {
  /** What the tab is called: its number, and the first line of its document. */
  readonly name: string;
  /** The document, to be sent as it is or with other names in it. */
  readonly query: string;
}

const PAGE = new URL('./playground/', import.meta.url);

/** The jobs of support, in the order of their files' names. */
export function readJobs(): readonly Job[] {
  const directory = new URL('jobs/', PAGE);
  return readdirSync(directory)
    .sort()
    .map((file, index) => {
      const query = readFileSync(new URL(file, directory), 'utf8');
      const title = present(/^# (.+)/.exec(query)?.[1], `${file} begins with its name`);
      return { name: `${index + 1} ${title}`, query };
    });
}

/**
 * @param release - what the addresses of the page's files begin with.
 * @returns the page of the playground, for the nonce that its answer's policy lets styles carry.
 */
export function preparePlaygroundPage(release: string): (nonce: string) => string {
  const jobs = escapeAttribute(JSON.stringify(readJobs()));
  const page = readFileSync(new URL('page.html', PAGE), 'utf8')
    .replace('{{release}}', release)
    .replace('{{jobs}}', () => jobs);
  return (nonce) => page.replace('{{nonce}}', nonce);
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
}
