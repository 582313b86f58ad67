import { GraphQLError } from 'graphql';
import { DigestsMissingError } from '../history/digest-budget.ts';
import { HistoryInconsistentError } from '../history/history.ts';
import { StateAmbiguousError } from '../history/namespace.ts';

/** Tells a reader of a state whose rows cannot be understood what has to be mended; every other error stays as it is. */
export function tellStateProblems(error: unknown): never {
  if (error instanceof HistoryInconsistentError) throw problem(error.message, 'HISTORY_INCONSISTENT');
  if (error instanceof DigestsMissingError) throw problem(error.message, 'QUERY_TOO_LARGE');
  if (error instanceof StateAmbiguousError) throw problem(error.message, 'STATE_AMBIGUOUS');
  throw error;
}

function problem(message: string, code: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}
