/**
 * A document that this project will not take in as a Terraform state: it is not JSON that PostgreSQL can
 * store, or not a version 4 state that Kilolock would have accepted (data model 2.10, 3.4 and trap 3).
 *
 * Neither `path`, `reason` nor `message` ever holds a value of the state. Keys that are not part of
 * Terraform's own structure appear in `path` in quotes and cut to 64 characters.
 */
export class UnsupportedStateDocumentError extends Error {
  override readonly name = 'UnsupportedStateDocumentError';
  readonly code = 'UNSUPPORTED_STATE_DOCUMENT';
  /** Where: a JSON path such as `$.resources[0].instances[2].attributes["user_data"]`. */
  readonly path: string;
  /** What is wrong there, as a clause without a full stop. */
  readonly reason: string;

  constructor(path: string, reason: string) {
    super(`Unsupported state document at ${path}: ${reason}`);
    this.path = path;
    this.reason = reason;
  }
}
