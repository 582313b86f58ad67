import type { FuzzTarget } from './target.ts';
import { archiveTarget } from './targets/archive.ts';
import { documentsTarget } from './targets/documents.ts';
import { graphqlTarget } from './targets/graphql.ts';
import { multipartTarget } from './targets/multipart.ts';
import { tokensTarget } from './targets/tokens.ts';

/** Whatever strangers can send, by what takes it. */
// biome-ignore lint/suspicious/noExplicitAny: the inputs of each are its own, and nobody else's.
export const FUZZ_TARGETS: readonly FuzzTarget<any>[] = [
  archiveTarget,
  documentsTarget,
  graphqlTarget,
  multipartTarget,
  tokensTarget,
];
