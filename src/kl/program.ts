import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { type CommonOptions, type Context, contextOf, interruption } from './context.ts';
import { EXIT, type Exit, failure, KlError } from './endings.ts';

/** What a command does: it is loaded only when it is called. */
interface CommandModule {
  run(context: Context, options: CommonOptions, ...args: unknown[]): Promise<Exit>;
  /** Whether its 1 says that there is a difference: as with `diff`, trouble is 2 then. */
  compares?(options: CommonOptions): boolean;
}

type Load = () => Promise<CommandModule>;

/** How a call ends. */
interface Call {
  exit: Exit;
  /** When it fails. */
  failed: Exit;
}

/**
 * Runs one command line.
 *
 * @param args what stands behind the program's name.
 * @returns what to end with.
 */
export async function run(args: readonly string[]): Promise<Exit> {
  const signal = interruption();
  const call: Call = { exit: EXIT.done, failed: EXIT.failed };
  const program = buildProgram(signal, call);
  if (args.length === 0) {
    program.outputHelp();
    return EXIT.done;
  }
  try {
    await program.parseAsync([...args], { from: 'user' });
    return call.exit;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    // A group that was called without a command has printed its help.
    if (error instanceof CommanderError && error.code === 'commander.help') return EXIT.usage;
    const known = error instanceof KlError ? error : await asKlError(error, signal);
    if (known.exit === EXIT.failed) known.exit = call.failed;
    const format = /(?:^| )--format[ =]json(?: |$)/.test(args.join(' ')) ? 'json' : 'table';
    // Help is given without it.
    const { Terminal } = await import('./terminal.ts');
    new Terminal({ format, quiet: false }).fail(program.name(), known);
    return known.exit;
  }
}

/** What is no error of ours: of an archive, of the operating system, or a bug, which keeps its stack. */
async function asKlError(error: unknown, signal: AbortSignal): Promise<KlError> {
  if (error instanceof CommanderError) {
    const [text = '', ...hints] = error.message.replace(/^error: /, '').split('\n');
    const advice = [
      ...hints.map((hint) => hint.replace(/^\((.*)\)$/, '$1')),
      'Add --help to see what it takes.',
    ];
    const message = `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`;
    return failure('USAGE', message, { advice: advice.join(' ') });
  }
  if (signal.aborted && signal.reason instanceof KlError) return signal.reason;
  const [{ named }, { isSystemError }] = await Promise.all([
    import('./archive-input.ts'),
    import('./files.ts'),
  ]);
  const archive = named('The archive', error);
  if (archive instanceof KlError) return archive;
  if (isSystemError(error)) {
    return failure('WRITE_FAILED', `The system refused: ${error.message}.`, { cause: error });
  }
  return failure('FAILED', 'This is a fault of the program.', {
    advice: error instanceof Error ? (error.stack ?? error.message) : String(error),
    cause: error,
  });
}

/** The whole tree of commands. */
function buildProgram(signal: AbortSignal, call: Call): Command {
  const program = new Command(process.title === 'kl-archive' ? 'kl-archive' : 'kl')
    .description('Takes the whole history of a Kilolock state to one verifiable file, and brings it back.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpCommand(false)
    .helpOption('-h, --help', 'print this help')
    .exitOverride()
    // Told as every error is.
    .configureOutput({ outputError: () => {} })
    .enablePositionalOptions()
    .addHelpText('after', generalHelp);
  const name = program.name();

  const group = (word: string, description: string) =>
    program.command(word).description(description).helpCommand(false).enablePositionalOptions();
  const leaf = (parent: Command, word: string, load: Load, examples: readonly string[]) => {
    const command = parent.command(word);
    if (examples.length > 0) {
      const lines = examples.map((example) => `  ${name} ${example}`);
      command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
    }
    return command
      .addOption(
        new Option('--format <format>', 'how the result is written')
          .choices(['table', 'json'])
          .default('table'),
      )
      .option('-q, --quiet', 'say nothing beside the result')
      .action(async (...given: unknown[]) => {
        const options = given.at(-2) as CommonOptions;
        const { run: perform, compares } = await load();
        if (compares?.(options)) call.failed = EXIT.usage;
        call.exit = await perform(await contextOf(options, signal), options, ...given.slice(0, -2));
      });
  };
  const serviceLeaf: typeof leaf = (...args) =>
    leaf(...args)
      .option(
        '--workspace <id>',
        "the workspace to work in, with --environment; the credential's own unless given",
      )
      .option('--environment <id>', 'the environment of that workspace')
      .option('--reason <text>', 'why support works there; it is recorded');
  const identity = () =>
    new Option('--identity <file>', 'the keys of encrypted archives, as age-keygen writes them');

  const exporting = group('export', 'take histories home');
  serviceLeaf(exporting, 'state', () => import('./commands/export-state.ts'), [
    'export state prod/network --out network.klstate',
    'export state prod/network -o - | aws s3 cp - s3://kept/network.klstate',
  ])
    .description("one state's whole history to one verified file")
    .argument('<name>', "the state's name")
    .option('-o, --out <file>', "where to; - for standard output; a file of the state's name unless given")
    .option('--force', 'replace a file that is there')
    .option('--if-changed <digest>', 'do nothing while the history digest is this one')
    .option('--recipient <recipient>', 'encrypt it for an age recipient, too; may be given again', collected)
    .option('--disclose-digest', 'let the history digest be read in an encrypted file without a key')
    .addOption(identity());
  serviceLeaf(exporting, 'states', () => import('./commands/export-states.ts'), [
    "export states 'prod/*' --out kept",
    "export states '*' --out kept --quiet",
  ])
    .description('every matching state to a directory; again, only what has changed')
    .argument('<pattern>', "a name, or a prefix that ends in *, as 'prod/*'")
    .requiredOption('-o, --out <directory>', 'where to; its index.json says what is there')
    .addOption(identity());

  const importing = group('import', 'bring histories back');
  serviceLeaf(importing, 'archive', () => import('./commands/import-archive.ts'), [
    'import archive network.klstate',
    'import archive network.klstate --as prod/restored --dry-run',
    'import archive network.klstate --overwrite --confirm prod/network --expect-serial 12',
  ])
    .description('a history from a file, verified here before a byte is sent')
    .argument('<file>', 'the archive')
    .option('--as <name>', "the name to restore under; the archive's own unless given")
    .option('--archived-copy', 'as an archived state, beside what is there')
    .option('--overwrite', 'replace the history that is there, which the service exports first')
    .option('--confirm <name>', 'with --overwrite: the name of the state to overwrite, once more')
    .option('--expect-serial <serial>', 'with --overwrite: the serial it must stand at')
    .option('--allow-shared-lineage', 'allow a second live state of this lineage')
    .addOption(identity())
    .option('--dry-run', 'say what it would do, and do nothing')
    .option('-y, --yes', 'ask nothing');
  serviceLeaf(importing, 'archives', () => import('./commands/import-archives.ts'), [
    'import archives kept --dry-run',
    'import archives kept --yes',
  ])
    .description('every archive of a directory, each under its own name')
    .argument('<directory>', 'what `export states` made')
    .addOption(identity())
    .option('--dry-run', 'say what it would do, and do nothing')
    .option('-y, --yes', 'ask nothing');
  serviceLeaf(importing, 'snapshot', () => import('./commands/import-snapshot.ts'), [
    'import snapshot terraform.tfstate --name prod/network',
    'import snapshot - --name prod/network --yes < terraform.tfstate',
  ])
    .description('one state file as the next version of a state; no history')
    .argument('<file>', 'the state file; - for standard input')
    .requiredOption('--name <name>', "the state's name")
    .option('-y, --yes', 'ask nothing');

  const archive = group('archive', 'look into archives, check them and make them, without a server');
  leaf(archive, 'inspect', () => import('./commands/archive-inspect.ts'), [
    'archive inspect network.klstate --versions --tags',
  ])
    .description('say what an archive says of itself, at once and unverified')
    .argument('<file>', 'the archive')
    .option('--versions', 'list the versions')
    .option('--tags', 'list the tags')
    .option('--events', 'list the audit events, without their payloads')
    .option('--resources', 'list the resource spans')
    .addOption(identity());
  serviceLeaf(archive, 'verify', () => import('./commands/archive-verify.ts'), [
    'archive verify kept/prod/*.klstate',
    'archive verify network.klstate --against prod/network',
  ])
    .description('say whether archives are complete, and whether they could be restored')
    .argument('<files...>', 'the archives')
    .option('--against <name>', 'compare with the history that the service holds of this state')
    .option('--keys <file>', 'public keys (PEM) of those whose signatures count')
    .option('--require-signature', 'refuse what none of them has signed')
    .addOption(identity());
  leaf(archive, 'extract', () => import('./commands/archive-extract.ts'), [
    'archive extract network.klstate --version release-2026-03 -o network.tfstate',
    'archive extract network.klstate | terraform state push -',
  ])
    .description('give out one raw state, byte for byte')
    .argument('<file>', 'the archive')
    .option('--version <ref>', 'a serial, @N for the Nth newest, a tag, an id, or current', 'current')
    .option('-o, --out <path>', 'where to; - for standard output', '-')
    .option('--force', 'replace a file that is there')
    .option('--salvage', 'also out of a damaged archive, unproven')
    .addOption(identity());
  serviceLeaf(archive, 'diff', () => import('./commands/archive-diff.ts'), [
    'archive diff monday.klstate tuesday.klstate',
    'archive diff network.klstate@10 network.klstate@12',
    'archive diff network.klstate prod/network',
  ])
    .description('say what differs, by resource, without secrets; ends with 1 when something does')
    .argument('<before>', 'an archive, a version of one (FILE@REF), or a state of the service')
    .argument('<after>', 'likewise')
    .addOption(identity());
  leaf(archive, 'redact', () => import('./commands/archive-redact.ts'), [
    'archive redact network.klstate -o network-redacted.klstate',
  ])
    .description('write an archive again without what is sensitive in its states, to be handed over')
    .argument('<file>', 'the archive')
    .requiredOption('-o, --out <file>', 'the archive to write, which no import takes')
    .option('--force', 'replace a file that is there')
    .addOption(identity());
  leaf(archive, 'build', () => import('./commands/archive-build.ts'), [
    'archive build s3-versions/ --name prod/network -o network.klstate',
    'archive build *.tfstate -o network.klstate --manifest when.csv --tag release-7=12',
  ])
    .description('make an archive of the state files of one state, from wherever they come')
    .argument('<paths...>', 'state files, or directories of them')
    .requiredOption('-o, --out <file>', 'the archive to write')
    .option('--name <name>', "the state's name; the file's unless given")
    .option(
      '--manifest <csv>',
      'when and by whom: a CSV with the columns file, created_at, created_by, source',
    )
    .option('--tag <tag=serial>', 'tag a version; may be given again', collected)
    .option('--force', 'replace a file that is there');

  serviceLeaf(program, 'status', () => import('./commands/status.ts'), [
    'status',
    'status prod/network',
    'status 0198c1d2-… --watch',
  ])
    .description('how states stand, one state, or one operation')
    .argument('[name-or-operation]', 'a state, or the id of an operation; every state unless given')
    .option('--watch', 'go on until the operation has ended, or you have');
  serviceLeaf(program, 'operations', () => import('./commands/operations.ts'), [
    'operations',
    "operations 'prod/*' --limit 100",
  ])
    .description('exports and imports, newest first')
    .argument('[pattern]', 'those of one name, or of a prefix that ends in *')
    .option('--limit <number>', 'how many', '20');
  serviceLeaf(program, 'cancel', () => import('./commands/cancel.ts'), ['cancel 0198c1d2-…'])
    .description('call an export or an import off')
    .argument('<operation>', 'its id');
  leaf(program, 'login', () => import('./commands/login.ts'), ['login', 'login < token']).description(
    'keep a token, from standard input or KL_TOKEN',
  );
  leaf(program, 'whoami', () => import('./commands/whoami.ts'), []).description(
    'who the token says you are, what it may and until when',
  );
  program
    .command('help')
    .description('print the help of a command')
    .argument('[command...]', 'as in `help export state`')
    .action((words: string[]) => {
      let command = program;
      for (const word of words) {
        const next = command.commands.find((each) => each.name() === word);
        command = next ?? program.error(`error: there is no command '${words.join(' ')}'`);
      }
      command.outputHelp();
    });
  program
    .command('completion')
    .description('print what a shell reads to complete the command line')
    .argument('<shell>', 'bash, zsh or fish')
    .action(async (shell: string) => {
      const { completionScript } = await import('./completion.ts');
      process.stdout.write(`${completionScript(shell, name)}\n`);
    })
    .addHelpText(
      'after',
      `\nExamples:\n  source <(${name} completion bash)\n  ${name} completion zsh > "\${fpath[1]}/_${name}"\n  ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    );
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .passThroughOptions()
    .action(async (words: string[]) => {
      const { completions } = await import('./completion.ts');
      const found = completions(program, words);
      if (found.length > 0) process.stdout.write(`${found.join('\n')}\n`);
    });
  return program;
}

/** The values of an option that may be given again. */
function collected(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function generalHelp({ command }: { readonly command: Command }): string {
  const name = command.name();
  return `
Environment:
  KL_ENDPOINT          where the service is, as http://127.0.0.1:4001/graphql
  KL_TOKEN             the token; without it, what \`${name} login\` kept
  KL_PROGRESS_SECONDS  how often progress is told where there is no terminal; 30 unless set, 0 for never
  NO_COLOR             no colours

Examples:
  ${name} export state prod/network --out network.klstate
  ${name} archive verify network.klstate
  ${name} import archive network.klstate --as prod/restored
  ${name} archive build old-states/ --name prod/network --out network.klstate

It ends with 0 done, 1 failed and nothing written, 2 usage, 3 refused, 4 credentials, 5 archive bad, 6 try again,
130 interrupted. \`archive diff\`, and \`archive verify --against\`, end with 1 when there is a difference.`;
}

function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return String(manifest.version);
}
