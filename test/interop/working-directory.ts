import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Kld } from './kilolock.ts';
import { type Finished, type Processes, succeeded } from './processes.ts';

/** What a working directory is made of. */
export interface WorkingDirectoryOptions {
  readonly processes: Processes;
  readonly programs: { readonly terraform: string; readonly kl: string };
  readonly directory: string;
  /** Where its state is kept. */
  readonly kld: Kld;
  /** The name of the state, as stored. */
  readonly state: string;
  /** What kld asks for, where it does. */
  readonly credential?: { readonly user: string; readonly password: string };
}

/** How `terraform` or `kl` is called. */
export interface CallOptions {
  readonly input?: string;
  /** Which way `kl` writes; its own choice when absent. */
  readonly protocol?: 'state-engine';
}

/** A directory in which somebody works with Terraform and `kl` on one state. */
export class WorkingDirectory {
  readonly path: string;
  readonly state: string;
  readonly #options: WorkingDirectoryOptions;
  #kld: Kld;

  private constructor(options: WorkingDirectoryOptions) {
    this.path = options.directory;
    this.state = options.state;
    this.#options = options;
    this.#kld = options.kld;
  }

  static async create(options: WorkingDirectoryOptions): Promise<WorkingDirectory> {
    const created = new WorkingDirectory(options);
    await mkdir(created.path, { recursive: true });
    await created.pointAt(options.kld);
    return created;
  }

  get kld(): Kld {
    return this.#kld;
  }

  /** Works on the state of the same name in another backend from now on. `terraform init` is the caller's to run. */
  async pointAt(kld: Kld): Promise<void> {
    this.#kld = kld;
    const address = kld.stateUrl(this.state);
    await this.write(
      'backend.tf',
      [
        'terraform {',
        '  backend "http" {',
        `    address        = "${address}"`,
        `    lock_address   = "${address}"`,
        `    unlock_address = "${address}"`,
        '    lock_method    = "LOCK"',
        '    unlock_method  = "UNLOCK"',
        '  }',
        '}',
        '',
      ].join('\n'),
    );
  }

  async write(file: string, text: string): Promise<void> {
    const path = join(this.path, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }

  async read(file: string): Promise<string> {
    return readFile(join(this.path, file), 'utf8');
  }

  /** Replaces a text that has to be in a file. */
  async replace(file: string, from: string, to: string): Promise<void> {
    const text = await this.read(file);
    if (!text.includes(from)) throw new Error(`${file} does not say ${from}.`);
    await this.write(file, text.replace(from, to));
  }

  /** Runs Terraform, whatever comes of it. */
  async try(args: readonly string[], { input }: CallOptions = {}): Promise<Finished> {
    const { processes, programs } = this.#options;
    return processes.run(programs.terraform, args, {
      directory: this.path,
      environment: this.#environment(),
      ...(input !== undefined && { input }),
    });
  }

  /** Runs Terraform; it has to succeed. */
  async terraform(args: readonly string[], options?: CallOptions): Promise<Finished> {
    return succeeded(await this.try(args, options), `terraform ${args.join(' ')}`);
  }

  async init(): Promise<void> {
    await this.terraform(['init', '-input=false', '-reconfigure']);
  }

  async apply(): Promise<Finished> {
    return this.terraform(['apply', '-input=false', '-auto-approve']);
  }

  /** 0 when nothing is to be changed, 2 when something is, 1 after an error. */
  async plan(): Promise<Finished> {
    return this.try(['plan', '-input=false', '-detailed-exitcode']);
  }

  /** Runs `kl`, whatever comes of it. */
  async tryKl(args: readonly string[], { input, protocol }: CallOptions = {}): Promise<Finished> {
    const { processes, programs } = this.#options;
    return processes.run(programs.kl, args, {
      directory: this.path,
      environment: { ...this.#environment(), ...(protocol !== undefined && { KL_PROTOCOL: protocol }) },
      ...(input !== undefined && { input }),
    });
  }

  /** Runs `kl`; it has to succeed. */
  async kl(args: readonly string[], options?: CallOptions): Promise<Finished> {
    return succeeded(await this.tryKl(args, options), `kl ${args.join(' ')}`);
  }

  #environment(): Record<string, string> {
    const { credential } = this.#options;
    return {
      TF_IN_AUTOMATION: '1',
      TF_CLI_ARGS: '-no-color',
      CHECKPOINT_DISABLE: '1',
      USER: 'interop',
      KL_STATE_URL: this.#kld.stateUrl(this.state),
      ...(credential !== undefined && {
        TF_HTTP_USERNAME: credential.user,
        TF_HTTP_PASSWORD: credential.password,
        KL_TOKEN: credential.password,
      }),
    };
  }
}
