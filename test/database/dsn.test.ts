import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { type DatabaseAddress, type DatabaseEndpoint, DsnError, readDsn } from '../../src/database/dsn.ts';

const unverified = { rejectUnauthorized: false };
const bothWays = (host: string, port: number): DatabaseEndpoint[] => [
  { host, port, ssl: unverified },
  { host, port, ssl: false },
];
const plain = (host: string, port = 5432): DatabaseEndpoint => ({ host, port, ssl: false });

describe('the address of a database is read as libpq reads it:', () => {
  test.each<[string, Partial<DatabaseAddress>]>([
    [
      'postgres://kilo:s3%40cret@db.example:6543/lock',
      { user: 'kilo', password: 's3@cret', database: 'lock', endpoints: bothWays('db.example', 6543) },
    ],
    ['postgresql://db.example/lock', { user: undefined, endpoints: bothWays('db.example', 5432) }],
    ['postgresql:///lock', { database: 'lock', endpoints: bothWays('localhost', 5432) }],
    ['postgresql://', { database: undefined, endpoints: bothWays('localhost', 5432) }],
    ['postgresql://u:a:b@h/d?sslmode=disable', { password: 'a:b', endpoints: [plain('h')] }],
    ['postgresql://[::1]:6543/d?sslmode=disable', { endpoints: [plain('::1', 6543)] }],
    ['postgresql://%2Fvar%2Frun%2Fpostgresql/d', { endpoints: [plain('/var/run/postgresql')] }],
    ['postgresql:///d?host=/tmp&port=6543&user=u', { user: 'u', endpoints: [plain('/tmp', 6543)] }],
    ['postgresql://u@a:1,b,c:3/d?sslmode=disable', { endpoints: [plain('a', 1), plain('b'), plain('c', 3)] }],
    ['postgresql://h/na%20me?options=-c%20geqo%3Doff', { database: 'na me', options: '-c geqo=off' }],
    ['postgresql://h/d?connect_timeout=3&pool_max_conns=9', { connectTimeoutSeconds: 3 }],
    ['postgresql://h/d?target_session_attrs=read-write', { role: 'primary' }],
    ['postgresql://h/d?ssl=true', { endpoints: [{ host: 'h', port: 5432, ssl: unverified }] }],
    [
      'host=db.example port=6543 user=kilo password=s3cret dbname=lock sslmode=disable',
      { user: 'kilo', password: 's3cret', database: 'lock', endpoints: [plain('db.example', 6543)] },
    ],
    [
      String.raw` host = h  password = 'it\'s a \\ word' dbname='' user=a\ b sslmode=disable `,
      { password: String.raw`it's a \ word`, database: undefined, user: 'a b', endpoints: [plain('h')] },
    ],
    ['dbname=d host=a,b port=7 sslmode=disable', { endpoints: [plain('a', 7), plain('b', 7)] }],
    ['host=/tmp dbname=d sslmode=verify-full', { endpoints: [plain('/tmp')] }],
    [
      'host=db.example hostaddr=10.0.0.1 sslmode=verify-full',
      { endpoints: [{ host: '10.0.0.1', port: 5432, ssl: { servername: 'db.example' } }] },
    ],
  ])('%s', (dsn, expected) => {
    expect(readDsn(dsn)).toMatchObject(expected);
  });

  test.each([
    ['disable', [false]],
    ['allow', [false, unverified]],
    ['prefer', [unverified, false]],
    ['require', [unverified]],
    ['verify-ca', [{ checkServerIdentity: expect.any(Function) }]],
    ['verify-full', [{}]],
  ])('sslmode=%s', (mode, expected) => {
    for (const dsn of [`postgresql://h/d?sslmode=${mode}`, `host=h sslmode=${mode}`])
      expect(readDsn(dsn).endpoints.map(({ ssl }) => ssl)).toEqual(expected);
  });

  test('a root certificate makes require verify, and "system" means the ones of the system', async () => {
    const file = join(tmpdir(), `root-${process.pid}.crt`);
    await writeFile(file, 'a certificate');
    const ca = Buffer.from('a certificate');
    const sslOf = (parameters: string) => readDsn(`postgresql://h/d?${parameters}`).endpoints[0]?.ssl;
    expect(sslOf(`sslmode=require&sslrootcert=${file}`)).toMatchObject({
      ca,
      checkServerIdentity: expect.any(Function),
    });
    expect(sslOf(`sslmode=verify-full&sslrootcert=${file}`)).toEqual({ ca });
    expect(sslOf('sslrootcert=system')).toEqual({});
  });
});

describe('an address that cannot be read is refused in one line that repeats nothing of it:', () => {
  test.each([
    ['postgresql://u:hunter2@h:port/d', 'a port'],
    ['postgresql://u:hunter2@h:99999/d', 'a port'],
    ['postgresql://u:hunter2%zz@h/d', 'the password'],
    ['postgresql://u:hunter2%00user@h/d', 'the password has a %00'],
    ['postgresql://u:hunter2@[h/d', 'no IPv6 address in brackets'],
    ['postgresql://u:hunter2@[::1]hunter2/d', 'no IPv6 address in brackets'],
    ['postgresql://u:hunter2@h/d?sslmode=hunter2', 'its sslmode'],
    ['postgresql://u:hunter2@h/d?sslrootcert=/no/hunter2', 'the file that sslrootcert names'],
    ['postgresql://u:hunter2@a,b:1,c/d?port=1,2', 'another number of ports'],
    ['postgresql://u:hunter2@h/d?novalue', 'has no "="'],
    ['postgresql://u:hunter2@h/d?target_session_attrs=x', 'its target_session_attrs'],
    ['postgresql://u:hunter2@h/d?connect_timeout=x', 'its connect_timeout'],
    ["host=h password='hunter2", 'neither a postgresql:// URI nor keyword=value pairs'],
    ['mysql://u:hunter2@h/d', 'neither a postgresql:// URI nor keyword=value pairs'],
    ['', 'it is empty'],
  ])('%s', (dsn, problem) => {
    let error: unknown;
    try {
      readDsn(dsn);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(DsnError);
    const { message } = error as DsnError;
    expect(message).toContain(problem);
    expect(message).not.toMatch(/hunter2|\n/);
  });
});
