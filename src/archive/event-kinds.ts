/**
 * Kinds of events that are in no archive. An export leaves them behind, and a reader refuses them, since only somebody who
 * forges an audit trail would put them in:
 *
 * - locks, which end with their backend;
 * - accesses to the history, so that exporting a state does not change its next export, and so that nobody brings a record
 *   of an access that never was;
 * - what happens to workspaces, environments, tokens, roles and accounts, which is never a state's: Kilolock calls those
 *   events after what they are about (data model 6).
 *
 * Every other kind travels, those that this release does not know included: Kilolock may come to write more.
 */
const LEFT_BEHIND =
  /^(?:(?:lock_acquire|lock_release|lock_force_release|state_export|state_archive_download|state_support_access)$|(?:tenant|environment|api_token|rbac|portal)_)/;

/** The same expression for PostgreSQL, which the kinds match that are in no archive. */
export const EVENT_KINDS_LEFT_BEHIND: string = LEFT_BEHIND.source;

/** Whether events of this kind travel with a history. */
export function travels(kind: string): boolean {
  return !LEFT_BEHIND.test(kind);
}
