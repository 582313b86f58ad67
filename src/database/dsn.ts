import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { OperatorError } from '../base/operator-error.ts';

/** The address of a database cannot be read. `message` never repeats a part of it: it holds a password. */
export class DsnError extends OperatorError {
  override readonly name = 'DsnError';

  constructor(problem: string, options?: ErrorOptions) {
    super(
      `The address of the database (DATABASE_URL, DATABASE_DIRECT_URL, or an environment's database_dsn) cannot be read: ${problem}.`,
      options,
    );
  }
}

/** One way to reach a server: a host, a port, and whether by TLS. */
export interface DatabaseEndpoint {
  /** A name, an address, or the directory of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly ssl: false | ConnectionOptions;
}

/** What the address of a database says. */
export interface DatabaseAddress {
  /** The ways to try, in order. */
  readonly endpoints: readonly DatabaseEndpoint[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  /** Command line options for the server, as in `-c geqo=off`. */
  readonly options: string | undefined;
  /** How long one attempt may take, in seconds; null: as long as we like. */
  readonly connectTimeoutSeconds: number | null;
  /** Which servers will do. */
  readonly role: 'any' | 'primary' | 'standby';
}

/**
 * Reads the address of a database as libpq does (PostgreSQL manual, "Connection Strings"), and as pgx, which Kilolock itself
 * reads it with: a URI or `keyword=value` pairs, several hosts, and every `sslmode` in libpq's meaning, which is not pg's.
 *
 * | sslmode | |
 * | --- | --- |
 * | `disable` | without TLS |
 * | `allow` | without TLS, and with it when the server insists |
 * | `prefer`, and none | with TLS, and without it when the server has none |
 * | `require` | with TLS, whoever the server is; with `sslrootcert` as `verify-ca` |
 * | `verify-ca` | with TLS, and a certificate of a known authority |
 * | `verify-full` | the same, made out to the host |
 *
 * Keywords that change nothing here are passed over, unknown ones too: pgx takes them for settings of the session, and those
 * are ours.
 *
 * @throws DsnError
 */
export function readDsn(dsn: string): DatabaseAddress {
  const given = /^postgres(ql)?:\/\//.test(dsn) ? readUri(dsn) : readKeywords(dsn);
  // What is empty is absent, as for libpq.
  const get = (keyword: string) => given.get(keyword) || undefined;
  return {
    endpoints: endpointsOf(get),
    user: get('user'),
    password: get('password'),
    database: get('dbname'),
    options: get('options'),
    connectTimeoutSeconds: timeoutOf(get('connect_timeout')),
    role: roleOf(get('target_session_attrs') ?? 'any'),
  };
}

type Get = (keyword: string) => string | undefined;

function readUri(uri: string): Map<string, string> {
  const rest = uri.slice(uri.indexOf('://') + 3);
  const [, authority = '', path, query] = /^([^/?]*)(?:\/([^?]*))?(?:\?([\s\S]*))?$/.exec(rest) ?? [];
  const given = new Map<string, string>();
  const at = authority.lastIndexOf('@');
  if (at >= 0) {
    const [user = '', ...password] = authority.slice(0, at).split(':');
    given.set('user', decode(user, 'the user'));
    given.set('password', decode(password.join(':'), 'the password'));
  }
  const hosts: string[] = [];
  const ports: string[] = [];
  for (const hostAndPort of authority.slice(at + 1).split(',')) {
    const found = /^(?:\[([^\]]*)\]|([^:[]*))(?::(.*))?$/.exec(hostAndPort);
    if (found === null) throw new DsnError('a host in it is no name, and no IPv6 address in brackets');
    const [, ipv6, name = '', port = ''] = found;
    hosts.push(decode(ipv6 ?? name, 'the host'));
    ports.push(port);
  }
  given.set('host', hosts.join(','));
  given.set('port', ports.join(','));
  given.set('dbname', decode(path ?? '', 'the name of the database'));
  for (const parameter of query === undefined ? [] : query.split('&')) {
    if (parameter === '') continue;
    const equals = parameter.indexOf('=');
    if (equals < 0) throw new DsnError('a parameter behind its "?" has no "="');
    const keyword = decode(parameter.slice(0, equals), 'the name of a parameter');
    given.set(keyword, decode(parameter.slice(equals + 1), 'the value of a parameter'));
  }
  // As JDBC spells it, which libpq takes too.
  if (given.get('ssl') === 'true') given.set('sslmode', 'require');
  return given;
}

function decode(text: string, what: string): string {
  // It would end the value, and begin a setting of its own, in what is sent to the server.
  if (text.includes('%00')) throw new DsnError(`${what} has a %00`);
  try {
    return decodeURIComponent(text);
  } catch {
    throw new DsnError(`${what} has a "%" that two hexadecimal digits do not follow`);
  }
}

function readKeywords(dsn: string): Map<string, string> {
  const given = new Map<string, string>();
  const pair = /\s*([^\s=']+)\s*=\s*(?:'((?:[^'\\]|\\[\s\S])*)'|((?:[^\s\\']|\\[\s\S])*))(?=\s|$)\s*/y;
  while (pair.lastIndex < dsn.length) {
    const [, keyword = '', quoted, bare = ''] = pair.exec(dsn) ?? [];
    if (keyword === '') throw new DsnError('it is neither a postgresql:// URI nor keyword=value pairs');
    given.set(keyword, (quoted ?? bare).replace(/\\([\s\S])/g, '$1'));
  }
  if (given.size === 0) throw new DsnError('it is empty');
  return given;
}

const DEFAULT_PORT = 5432;

function endpointsOf(get: Get): DatabaseEndpoint[] {
  const names = (get('host') ?? '').split(',');
  const addresses = (get('hostaddr') ?? '').split(',');
  const hosts = get('hostaddr') === undefined ? names : addresses;
  const ports = (get('port') ?? '').split(',');
  if (ports.length > 1 && ports.length !== hosts.length)
    throw new DsnError('it has another number of ports than of hosts');
  return hosts.flatMap((given, index) => {
    const host = given || 'localhost';
    const port = portOf(ports.length === 1 ? ports[0] : ports[index]);
    return encryptions(get, names[index] || host, host).map((ssl) => ({ host, port, ssl }));
  });
}

function portOf(text: string | undefined): number {
  if (!text) return DEFAULT_PORT;
  if (!/^\d{1,5}$/.test(text) || Number(text) < 1 || Number(text) > 65535)
    throw new DsnError('a port is not a number from 1 to 65535');
  return Number(text);
}

/** With and without TLS, in the order to try. */
function encryptions(get: Get, name: string, host: string): (false | ConnectionOptions)[] {
  // TLS is for the network: libpq never speaks it on a Unix socket.
  if (host.startsWith('/')) return [false];
  const rootCertificate = get('sslrootcert');
  const mode = get('sslmode') ?? (rootCertificate === 'system' ? 'verify-full' : 'prefer');
  const client = {
    ...(get('sslcert') !== undefined && { cert: read(get, 'sslcert') }),
    ...(get('sslkey') !== undefined && { key: read(get, 'sslkey') }),
    ...(get('sslpassword') !== undefined && { passphrase: get('sslpassword') }),
  };
  const authority =
    rootCertificate === undefined || rootCertificate === 'system' ? {} : { ca: read(get, 'sslrootcert') };
  const unverified = { ...client, rejectUnauthorized: false };
  const byAuthority = { ...client, ...authority, checkServerIdentity: () => undefined };
  const verified = { ...client, ...authority, ...(name !== host && { servername: name }) };
  const ways = new Map<string, (false | ConnectionOptions)[]>([
    ['disable', [false]],
    ['allow', [false, unverified]],
    ['prefer', [unverified, false]],
    ['no-verify', [unverified]], // As pg spells it.
    ['require', [rootCertificate === undefined ? unverified : byAuthority]],
    ['verify-ca', [byAuthority]],
    ['verify-full', [verified]],
  ]).get(mode);
  if (ways !== undefined) return ways;
  throw new DsnError('its sslmode is none of disable, allow, prefer, require, verify-ca and verify-full');
}

function read(get: Get, keyword: string): Buffer {
  try {
    return readFileSync(get(keyword) ?? '');
  } catch (cause) {
    throw new DsnError(`the file that ${keyword} names cannot be read`, { cause });
  }
}

function timeoutOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (!/^-?\d{1,9}$/.test(text)) throw new DsnError('its connect_timeout is no number of seconds');
  return Number(text) > 0 ? Number(text) : null;
}

const ROLES = new Map<string, DatabaseAddress['role']>([
  ['any', 'any'],
  ['prefer-standby', 'any'],
  ['read-write', 'primary'],
  ['primary', 'primary'],
  ['read-only', 'standby'],
  ['standby', 'standby'],
]);

function roleOf(attributes: string): DatabaseAddress['role'] {
  const role = ROLES.get(attributes);
  if (role !== undefined) return role;
  throw new DsnError(`its target_session_attrs is none of ${[...ROLES.keys()].join(', ')}`);
}
