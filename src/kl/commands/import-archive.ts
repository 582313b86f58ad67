import type { VerifiedArchive } from '../../archive/reader.ts';
import { nextSteps } from '../backend-block.ts';
import type { CommonOptions, Context } from '../context.ts';
import { DOCUMENTS, type ImportAnswer, type ReportAnswer } from '../documents.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { importArchive, type Placement, prepareImport } from '../import-archive.ts';
import { shown } from '../progress.ts';
import { connect, type Service } from '../service.ts';
import { sendArchive } from '../staged-upload.ts';
import { type Cell, pairs } from '../tables.ts';
import type { Terminal } from '../terminal.ts';
import { bytesText, counted, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly as?: string;
  readonly archivedCopy?: boolean;
  readonly overwrite?: boolean;
  readonly confirm?: string;
  readonly expectSerial?: string;
  readonly allowSharedLineage?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** `kl import archive`: a history from a file into the service, verified here before a byte is sent. */
export async function run(context: Context, options: Options, path: string): Promise<Exit> {
  const { terminal } = context;
  const { dryRun = false, yes = false } = options;
  checkOptions(options, terminal);
  await using prepared = await shown(terminal, path, (work) => prepareImport(path, context, work));
  const { archive } = prepared;
  const name = options.as ?? archive.manifest.state.label;
  const service = await connect(context);
  const placement = await placementOf(service, options, name);
  await using upload = await shown(terminal, path, (work) =>
    sendArchive(service, prepared.path, archive, work),
  );
  const perform = (isDry: boolean) =>
    shown(terminal, name, (work) =>
      importArchive(service, { archive, upload, placement, dryRun: isDry }, work),
    );
  if (dryRun) {
    const preview = await perform(true);
    terminal.result(resultOf(preview, archive), () => planText(path, preview.report));
    return EXIT.done;
  }
  if (!yes && !(options.overwrite && options.confirm !== undefined)) {
    const { report } = await perform(true);
    process.stderr.write(`${planText(path, report)}\n\n`);
    await ask(context, options, name, report);
  }
  const operation = await perform(false);
  const { stateArchive, report } = operation;
  terminal.result(resultOf(operation, archive), () => doneText(report, archive));
  if (stateArchive !== null && report.outcome !== 'ARCHIVED_COPY') {
    terminal.say(`\n${nextSteps(stateArchive)}`);
  }
  return EXIT.done;
}

function checkOptions(options: Options, terminal: Terminal): void {
  const { archivedCopy, overwrite, confirm, expectSerial, dryRun, yes } = options;
  const usage = (message: string) => failure('USAGE', message);
  if (archivedCopy && overwrite) throw usage('--archived-copy and --overwrite exclude each other.');
  if (!overwrite && (confirm !== undefined || expectSerial !== undefined)) {
    throw usage('--confirm and --expect-serial go with --overwrite.');
  }
  if (expectSerial !== undefined && !/^(0|[1-9]\d{0,18})$/.test(expectSerial)) {
    throw usage('--expect-serial: expected a serial in decimal digits.');
  }
  if (dryRun || terminal.isInteractive) return;
  if (overwrite && confirm === undefined) {
    throw usage('Nobody is here to type the name: say --confirm NAME --expect-serial N, or --dry-run.');
  }
  if (!overwrite && !yes)
    throw usage('Nobody is here to be asked: say --yes, or --dry-run to see what it would do.');
}

async function placementOf(service: Service, options: Options, name: string): Promise<Placement> {
  const { archivedCopy, overwrite, confirm, expectSerial, allowSharedLineage } = options;
  const plain = { name: options.as, allowSharedLineage };
  if (archivedCopy) return { ...plain, onConflict: 'ARCHIVED_COPY' };
  if (!overwrite) return plain;
  const now = confirm === undefined ? await service.ask(DOCUMENTS.state, { name }) : null;
  return {
    ...plain,
    onConflict: 'OVERWRITE',
    // Typed, it is held against the name before anything is sent.
    confirmName: confirm ?? name,
    expectedCurrentSerial: expectSerial ?? now?.manifest?.currentSerial,
  };
}

async function ask(
  { terminal, signal }: Context,
  options: Options,
  name: string,
  report: ReportAnswer,
): Promise<void> {
  if (!options.overwrite) return terminal.confirm('Import it?', signal);
  const replaced = counted(report.replacedVersionCount, 'version');
  const typed = await terminal.ask(
    `This replaces the history of ${visible(name)}, ${replaced}. Type its name to go on: `,
    '--confirm NAME',
    signal,
  );
  if (typed !== name) throw failure('NOT_CONFIRMED', 'That is not the name. Nothing was done.');
}

const OUTCOMES = {
  CREATED: 'a new active state',
  ARCHIVED_COPY: 'a new archived state, beside what is there',
  REPLACED: 'an existing state, whose history is replaced',
} as const;

function resultOf({ id, stateArchive, report }: ImportAnswer, archive: VerifiedArchive) {
  return {
    operationId: id,
    stateArchive,
    report,
    archiveHistoryDigest: archive.historyDigest,
    digestEqual: report?.historyDigest === archive.historyDigest,
  };
}

function planText(path: string, report: ReportAnswer): string {
  const { replacedVersionCount } = report;
  return reportText(report, {
    From: `${path}, taken of ${report.sourceName}`,
    To: report.name,
    As: OUTCOMES[report.outcome],
    Replaces: replacedVersionCount > 0 ? counted(replacedVersionCount, 'version') : undefined,
  });
}

function doneText(report: ReportAnswer, archive: VerifiedArchive): string {
  const first = { State: report.name, As: OUTCOMES[report.outcome] };
  return reportText(report, first, {
    'History digest': report.historyDigest,
    'Digest equal':
      report.historyDigest === archive.historyDigest
        ? "yes: the rows hold the archive's history"
        : `no: ${counted(report.normalisedVersionCount, 'raw state')} are kept in the spelling of PostgreSQL's jsonb, with the same contents`,
  });
}

function reportText(report: ReportAnswer, first: Record<string, Cell>, last?: Record<string, Cell>): string {
  const text = pairs({
    ...first,
    Versions: `${report.versionCount}, ${bytesText(BigInt(report.rawBytes))} of raw states`,
    Tags: report.tagCount,
    'Audit events': report.eventCount,
    'Resource spans': `${report.resourceSpanCount}${report.resourceSpansDerived ? ', derived' : ''}`,
    Outputs: report.outputCount,
    ...last,
  });
  const warnings = report.warnings.map(({ code, message }) => `Warning  ${code ?? ''}: ${visible(message)}`);
  return [text, ...(warnings.length > 0 ? ['', ...warnings] : [])].join('\n');
}
