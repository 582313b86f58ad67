import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { SNAPSHOT_LIMITS } from '../../terraform/limits.ts';
import { bytesOf } from '../archive-input.ts';
import { nextSteps } from '../backend-block.ts';
import type { CommonOptions, Context } from '../context.ts';
import { readNamed } from '../document-reader.ts';
import { DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit, failure, KlError } from '../endings.ts';
import { connect } from '../service.ts';
import { pairs } from '../tables.ts';
import { bytesText } from '../texts.ts';

interface Options extends CommonOptions {
  readonly name: string;
  readonly yes?: boolean;
}

/** `kl import snapshot`: one state file becomes the next version of a state. */
export async function run(context: Context, options: Options, path: string): Promise<Exit> {
  const { terminal, signal } = context;
  const { name, yes = false } = options;
  if (!yes && (path === '-' || !terminal.isInteractive)) {
    throw failure('USAGE', 'Nobody is here to be asked: say --yes.');
  }
  const what = path === '-' ? 'standard input' : path;
  const bytes = await readAll(path);
  const document = readNamed(what, bytes, SNAPSHOT_LIMITS);
  terminal.say(
    pairs({
      From: `${what}, ${bytesText(bytes.length)}`,
      Serial: document.serial,
      Lineage: document.lineage || null,
      Terraform: document.terraformVersion,
      Resources: document.instanceCount,
      To: `the next version of ${name}`,
    }),
  );
  const service = await connect(context);
  if (!yes) await terminal.confirm('Import it? A snapshot carries no history.', signal);
  const file = new File([bytes], path === '-' ? 'stdin.tfstate' : basename(path));
  const input = { name, idempotencyKey: randomUUID() };
  const { version, stateArchive } = await service.change(DOCUMENTS.importSnapshot, input, file);
  terminal.result({ name, version }, () =>
    pairs({
      State: name,
      Serial: version?.serial,
      Written: version?.createdAt,
      Version: version?.id,
    }),
  );
  if (stateArchive !== null) terminal.say(`\n${nextSteps(stateArchive)}`);
  return EXIT.done;
}

async function readAll(path: string): Promise<Buffer<ArrayBuffer>> {
  const { maxBytes } = SNAPSHOT_LIMITS;
  async function* bounded() {
    let length = 0;
    for await (const chunk of path === '-' ? process.stdin : bytesOf(path)) {
      length += chunk.length;
      if (length > maxBytes) throw new KlError('ARCHIVE_TOO_LARGE', `A state has at most ${maxBytes} bytes.`);
      yield chunk;
    }
  }
  return Buffer.from(await buffer(bounded()));
}
