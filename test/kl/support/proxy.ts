import { once } from 'node:events';
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '../../support/until.ts';

/** What a proxy does to one answer. */
export interface Interference {
  /** Which requests; every one unless told. */
  readonly matches?: (incoming: IncomingMessage) => boolean;
  /** How often; once unless told. */
  times?: number;
  /** After so many bytes of the body the connection is cut, or with `hold` nothing more comes. */
  readonly after: number;
  readonly how: 'cut' | 'hold' | 'flip';
  /** Of the request instead of its answer; it can be cut or held. */
  readonly ofRequest?: true;
  /**
   * Nothing more passes, and the connection stays, until this says that what has passed arrived where it was going: how much of it
   * somebody has read at any moment depends on how busy the machine is.
   */
  readonly hasArrived?: () => boolean | Promise<boolean>;
  /** Called when it happens. */
  readonly onDone?: () => void;
}

/** Stands between `kl` and a service, and lets a test do harm to what passes. */
export interface HarmfulProxy {
  readonly url: string;
  /** Every request that passed: method, path without its query, and the range asked for. */
  readonly requests: readonly {
    readonly path: string;
    readonly range: string | undefined;
    readonly offset: string | undefined;
  }[];
  /** The service behind it. */
  target: string;
  interfere(interference: Interference): void;
  /** Cuts every connection of its clients. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts a proxy on a free port. */
export async function startProxy(): Promise<HarmfulProxy> {
  const requests: { path: string; range: string | undefined; offset: string | undefined }[] = [];
  const interferences: Interference[] = [];
  const proxy = { target: '' };
  const take = (incoming: IncomingMessage) => {
    const found = interferences.find(({ matches }) => matches?.(incoming) ?? true);
    if (found === undefined) return null;
    found.times = (found.times ?? 1) - 1;
    if (found.times === 0) interferences.splice(interferences.indexOf(found), 1);
    return found;
  };
  const server: Server = createServer((incoming, outgoing) => {
    const path = incoming.url?.split('?')[0] ?? '';
    const { range, 'upload-offset': offset } = incoming.headers;
    requests.push({ path, range, offset: offset?.toString() });
    forward(proxy.target, incoming, outgoing, take(incoming));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    get target() {
      return proxy.target;
    },
    set target(url: string) {
      proxy.target = url;
    },
    interfere: (interference) => void interferences.push(interference),
    cut: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Passes the beginning of a request on, and cuts both connections then, or lets nothing more pass. */
async function stopRequest(
  incoming: IncomingMessage,
  passed: ClientRequest,
  outgoing: ServerResponse,
  { after, how, hasArrived = () => true, onDone }: Interference,
): Promise<void> {
  let passedBytes = 0;
  for await (const chunk of incoming) {
    passedBytes += chunk.length;
    if (!passed.write(chunk)) await once(passed, 'drain');
    if (passedBytes < after) continue;
    await until(hasArrived);
    onDone?.();
    if (how === 'hold') await once(outgoing, 'close');
    passed.destroy();
    outgoing.destroy();
    return;
  }
  passed.end();
}

function forward(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  interference: Interference | null,
): void {
  const { method, url, headers } = incoming;
  const passed = request(`${target}${url}`, { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    let passedBytes = 0;
    let isStopped = false;
    answer.on('data', (chunk: Buffer) => {
      const before = passedBytes;
      passedBytes += chunk.length;
      if (interference === null || interference.ofRequest || passedBytes < interference.after) {
        outgoing.write(chunk);
        return;
      }
      const at = Math.max(interference.after - before, 0);
      if (interference.how === 'flip') {
        if (before < interference.after) chunk.writeUInt8(chunk.readUInt8(at - 1) ^ 1, at - 1);
        outgoing.write(chunk);
        return;
      }
      if (outgoing.destroyed) return;
      isStopped = true;
      answer.pause();
      outgoing.write(chunk.subarray(0, at), async () => {
        await until(interference.hasArrived ?? (() => true));
        if (interference.how === 'cut') outgoing.destroy();
        interference.onDone?.();
      });
    });
    answer.on('end', () => {
      if (!isStopped) outgoing.end();
    });
    answer.on('error', () => outgoing.destroy());
    outgoing.on('close', () => answer.destroy());
  });
  passed.on('error', () => outgoing.destroy());
  // A client that goes away meanwhile is what a test may be about.
  if (interference?.ofRequest)
    stopRequest(incoming, passed, outgoing, interference).catch(() => passed.destroy());
  else incoming.pipe(passed);
}
