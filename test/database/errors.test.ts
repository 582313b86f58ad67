import { expect, test } from '@jest/globals';
import pg from 'pg';
import { copiedRow } from '../../src/database/errors.ts';

test.each([
  'COPY state_versions, line 5, column raw_state',
  'COPY state_versions, Zeile 5, Spalte raw_state',
  'COPY state_versions, ligne 5, colonne raw_state',
])('the row that PostgreSQL refused is found whatever language the server speaks: %s', (where) => {
  const error = Object.assign(new pg.DatabaseError('refused', 0, 'error'), { where });
  expect(copiedRow(error)).toEqual({ table: 'state_versions', row: 4 });
});
