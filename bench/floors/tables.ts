/** The tables that hold a history, parents first. */
export const HISTORY_TABLES = [
  'states',
  'state_versions',
  'state_version_tags',
  'resources',
  'outputs',
  'events',
] as const;
