import type { Migration } from 'kysely/migration';
import { operations } from './0001-operations.ts';
import { operationList } from './0002-operation-list.ts';
import { operationAttempts } from './0003-operation-attempts.ts';
import { uploads } from './0004-uploads.ts';
import { keptArchives } from './0005-kept-archives.ts';
import { manyOperations } from './0006-many-operations.ts';
import { housekeeping } from './0007-housekeeping.ts';

/** The migrations of the schema `state_archive`, by name, in the order of their names. A released one never changes. */
export const migrations: Readonly<Record<string, Migration>> = {
  '0001-operations': operations,
  '0002-operation-list': operationList,
  '0003-operation-attempts': operationAttempts,
  '0004-uploads': uploads,
  '0005-kept-archives': keptArchives,
  '0006-many-operations': manyOperations,
  '0007-housekeeping': housekeeping,
};
