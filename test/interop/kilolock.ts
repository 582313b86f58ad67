import { freePort } from '../support/free-port.ts';
import { type Answer, send } from './http.ts';
import type { Processes, Running } from './processes.ts';

/** How a server of Kilolock is started. */
export interface KilolockOptions {
  readonly program: string;
  readonly processes: Processes;
  /** A directory it may write in. */
  readonly directory: string;
  readonly connectionString: string;
  /** Variables of Kilolock beside the usual ones. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** A running kld: Kilolock's state backend. */
export class Kld {
  readonly url: string;
  readonly #running: Running;

  private constructor(url: string, running: Running) {
    this.url = url;
    this.#running = running;
  }

  /** Starts it on a database, which it migrates; without credentials unless the environment says otherwise. */
  static async start(options: KilolockOptions): Promise<Kld> {
    const { url, running } = await startServer(options, 'KL_LISTEN_ADDR', { KL_AUTH_MODE: 'open' });
    return new Kld(url, running);
  }

  /** Where Terraform's HTTP backend finds a state. Names go into the path as they are. */
  stateUrl(name: string): string {
    return `${this.url}/v1/states/${name}`;
  }

  /** The document as Terraform would get it, byte for byte. */
  async document(name: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    const response = await fetch(this.stateUrl(name), { headers });
    if (!response.ok) throw new Error(`kld gives no document of ${name}: ${response.status}`);
    return response.text();
  }

  /** Posts a document as Terraform does, in Terraform's layout unless it is a text already. */
  async post(name: string, document: unknown, query = ''): Promise<Answer> {
    const body = typeof document === 'string' ? document : JSON.stringify(document, null, 2);
    return send('POST', this.stateUrl(name) + query, { body });
  }

  /** Takes a lock as Terraform does. */
  async lock(
    name: string,
    id: string,
    who = id,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const body = { ID: id, Who: who, Operation: 'OperationTypeApply' };
    return send('LOCK', this.stateUrl(name), { body, headers });
  }

  /** Gives a lock back. */
  async unlock(name: string, id: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return send('UNLOCK', this.stateUrl(name), { body: { ID: id }, headers });
  }

  /** Calls the interface that `kl` uses, for one state. */
  async administer(name: string, method: string, path: string, body?: unknown): Promise<Answer> {
    const url = new URL(`${this.url}/v1/admin/${path}`);
    url.searchParams.set('state_name', name);
    return send(method, url.href, { body });
  }

  async stop(): Promise<void> {
    await this.#running.stop();
  }
}

/** A running klc: Kilolock's control plane. */
export class Klc {
  static readonly #token = 'interop-control-token';
  readonly #url: string;
  readonly #running: Running;

  private constructor(url: string, running: Running) {
    this.#url = url;
    this.#running = running;
  }

  static async start(options: KilolockOptions): Promise<Klc> {
    const { url, running } = await startServer(options, 'KL_CONTROL_LISTEN_ADDR', {
      KL_CONTROL_TOKEN: Klc.#token,
    });
    return new Klc(url, running);
  }

  /** Calls the control plane as its operator. */
  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    return send(method, `${this.#url}/v1/api${path}`, {
      body,
      headers: { authorization: `Bearer ${Klc.#token}` },
    });
  }

  async stop(): Promise<void> {
    await this.#running.stop();
  }
}

async function startServer(
  { program, processes, directory, connectionString, environment }: KilolockOptions,
  addressVariable: string,
  defaults: Readonly<Record<string, string>>,
): Promise<{ url: string; running: Running }> {
  // Kilolock's servers do not tell which port they took: they have to be given one.
  const address = `127.0.0.1:${await freePort()}`;
  const url = `http://${address}`;
  const running = await processes.serve(
    program,
    ['serve'],
    {
      directory,
      environment: {
        ...defaults,
        KL_DATABASE_URL: connectionString,
        KL_ROUTING_STATS_INTERVAL_SECONDS: '0',
        [addressVariable]: address,
        ...environment,
      },
    },
    () =>
      fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
  );
  return { url, running };
}
