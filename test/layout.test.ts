import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../', import.meta.url));

test('the README draws every room of src/, and no other', () => {
  const picture = /^src\/\n(?<rooms>(?: {2}.*\n)+)/m.exec(readFileSync(join(root, 'README.md'), 'utf8'));
  const drawn = picture?.groups?.rooms?.match(/^ {2}\S+/gm)?.map((room) => room.trim());
  const rooms = readdirSync(join(root, 'src'), { withFileTypes: true });
  expect(drawn?.sort()).toEqual(
    rooms.map((room) => (room.isDirectory() ? `${room.name}/` : room.name)).sort(),
  );
});

/** The files, by path, in which the linter of this project finds an import that does not run downwards. */
async function upwardImports(sources: Readonly<Record<string, string>>): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'state-archive-layout-'));
  try {
    for (const name of ['biome.json', '.gitignore']) cpSync(join(root, name), join(directory, name));
    for (const [path, source] of Object.entries(sources)) {
      mkdirSync(join(directory, dirname(path)), { recursive: true });
      writeFileSync(join(directory, path), source);
    }
    const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
    const options = [
      'lint',
      '--only=style/noRestrictedImports',
      '--reporter=github',
      '--max-diagnostics=none',
    ];
    const found = await new Promise<string>((resolve) =>
      execFile(process.execPath, [biome, ...options], { cwd: directory }, (_error, stdout) =>
        resolve(stdout),
      ),
    );
    return Object.keys(sources).filter((path) =>
      found.split('\n').some((line) => line.includes(`/${path},`) && line.includes('Imports run downwards')),
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('an import that runs upwards, or aside, is an error of `npm run check`', async () => {
  const upwards = {
    'src/base/x.ts': '../archive/format.ts',
    'src/archive/x.ts': '../terraform/document.ts',
    'src/database/x.ts': '../history/states.ts',
    'src/inspection/x.ts': '../database/connection.ts',
    'src/store/x.ts': '../archive/format.ts',
    'src/observability/x.ts': '../operations/services.ts',
    'src/auth/x.ts': '../history/states.ts',
    'src/history/x.ts': '../restore/plan.ts',
    'src/restore/x.ts': '../operations/services.ts',
    'src/operations/x.ts': '../http/server.ts',
    'src/http/x.ts': '../graphql/schema.ts',
    'src/graphql/x.ts': '../cli/token.ts',
    'src/graphql/resolvers/x.ts': '../../service.ts',
    'src/cli/x.ts': '../service.ts',
    'src/kl/x.ts': '../inspection/inspector.ts',
    'src/kl/commands/x.ts': '../../operations/services.ts',
    'src/config.ts': './operations/services.ts',
    'src/service.ts': './development/database.ts',
    'src/main.ts': './development/database.ts',
    'src/development/x.ts': '../../test/support/database.ts',
    'src/a-new-room/x.ts': '../base/text.ts',
  };
  const statically = Object.entries(upwards).map(([path, imported]) => [path, `import '${imported}';\n`]);
  const dynamically = Object.entries(upwards).map(([path, imported]) => [
    path,
    `await import('${imported}');\n`,
  ]);
  expect(await upwardImports(Object.fromEntries(statically))).toEqual(Object.keys(upwards));
  expect(await upwardImports(Object.fromEntries(dynamically))).toEqual(Object.keys(upwards));
});

test('an import that runs downwards is none', async () => {
  const downwards = {
    'src/archive/x.ts': "import '../base/text.ts';\n",
    'src/history/x.ts': "import '../archive/format.ts';\nimport './states.ts';\n",
    'src/graphql/resolvers/x.ts': "import '../../history/states.ts';\nimport '../context.ts';\n",
    'src/kl/commands/x.ts': "import '../../archive/reader.ts';\nimport '../terminal.ts';\n",
    'src/main.ts': "import './service.ts';\n",
    'src/development/x.ts': "import '../service.ts';\n",
  };
  expect(await upwardImports(downwards)).toEqual([]);
});
