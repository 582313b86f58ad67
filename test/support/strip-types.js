import { stripTypeScriptTypes } from 'node:module';

/** What Jest does to our files before it runs them: what Node.js itself does, and nothing more. */
export default {
  process: (source) => ({ code: stripTypeScriptTypes(source) }),
};
