import { fileURLToPath } from 'node:url';

/** For the environment of processes of the project: what one has compiled the next need not. It is half of a start. */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: fileURLToPath(
    new URL('../../node_modules/.cache/kilolock-state-archive', import.meta.url),
  ),
};
