/**
 * The lock under which the schemas are changed: the one that Kysely's migrator takes for a session, and 0.1 with it. Here it
 * is a transaction's, because a session's would stay behind in a pooler, or after a failure.
 */
export const MIGRATION_LOCK = '3853314791062309107';
