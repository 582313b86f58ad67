import type { Part } from './part.ts';
import { builtHistories } from './parts/built-histories.ts';
import { conflicts } from './parts/conflicts.ts';
import { databaseRoles } from './parts/database-roles.ts';
import { foreignArchives } from './parts/foreign-archives.ts';
import { goingOn } from './parts/going-on.ts';
import { histories } from './parts/histories.ts';
import { locks } from './parts/locks.ts';
import { logs } from './parts/logs.ts';
import { names } from './parts/names.ts';
import { oddDocumentStates } from './parts/odd-documents.ts';
import { olderDatabases } from './parts/older-databases.ts';
import { overwritesUnderWrites } from './parts/overwrites-under-writes.ts';
import { roundTrip } from './parts/round-trip.ts';
import { snapshots } from './parts/snapshots.ts';
import { workspaces } from './parts/workspaces/workspaces.ts';
import { writesDuringExports } from './parts/writes-during-exports.ts';

/** Every part, in the order they are run: some go on with what others wrote. */
export const PARTS: readonly Part[] = [
  histories,
  roundTrip,
  conflicts,
  goingOn,
  names,
  locks,
  snapshots,
  oddDocumentStates,
  writesDuringExports,
  overwritesUnderWrites,
  foreignArchives,
  builtHistories,
  logs,
  databaseRoles,
  olderDatabases,
  workspaces,
];
