/**
 * Kinds of events that are in no archive. An export leaves them behind, and a reader refuses them, since only somebody who
 * forges an audit trail would put them in:
 *
 * - locks, which end with their backend;
 * - accesses to the history, so that exporting a state does not change its next export, and so that nobody brings a record
 *   of an access that never was;
 * - what happens to workspaces, environments, tokens and accounts, which is never a state's (data model 6).
 *
 * Every other kind travels, those that this release does not know included: Kilolock may come to write more.
 */
const KINDS_LEFT_BEHIND = [
  'lock_acquire',
  'lock_release',
  'lock_force_release',
  'state_export',
  'state_archive_download',
  'state_support_access',
] as const;

/** Beginnings of the names of such kinds: Kilolock's control events are called after what they are about. */
const PREFIXES_LEFT_BEHIND = ['tenant_', 'environment_', 'api_token_', 'rbac_', 'portal_'] as const;

/** A regular expression, for JavaScript and PostgreSQL alike, that the kinds match which are in no archive. */
export const EVENT_KINDS_LEFT_BEHIND = `^(?:(?:${KINDS_LEFT_BEHIND.join('|')})$|${PREFIXES_LEFT_BEHIND.join('|')})`;

const leftBehind = new RegExp(EVENT_KINDS_LEFT_BEHIND);

/** Whether events of this kind travel with a history. */
export function travels(kind: string): boolean {
  return !leftBehind.test(kind);
}
