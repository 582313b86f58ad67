import { deepStrictEqual, ok } from 'node:assert/strict';
import type { ArchiveService } from './archive-service.ts';
import type { Report } from './report.ts';

/** Looks through the logs of services that had nothing to fail at. */
export async function checkServiceLogs(
  report: Report,
  whose: string,
  services: readonly ArchiveService[],
  secrets: readonly string[],
): Promise<void> {
  const lines = services.flatMap(({ log }) => log.split('\n')).filter((line) => line.startsWith('{'));
  await report.check(`${whose} log no secret`, () => {
    ok(lines.length > 0);
    const told = secrets.filter((secret) => secret !== '' && lines.some((line) => line.includes(secret)));
    deepStrictEqual(told.length, 0);
    return `${lines.length} lines`;
  });
  await report.check(`${whose} log no error`, () =>
    deepStrictEqual(
      lines.filter((line) => /"level":(50|60|"error"|"fatal")/.test(line)),
      [],
    ),
  );
}
