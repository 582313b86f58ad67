import { expect, test } from '@jest/globals';
import { attachment } from '../../src/base/content-disposition.ts';

test.each([
  ['prod-network.klstate', 'attachment; filename="prod-network.klstate"'],
  ['a b.klstate', 'attachment; filename="a b.klstate"'],
  ['état.klstate', `attachment; filename="_tat.klstate"; filename*=UTF-8''%C3%A9tat.klstate`],
  ['a"b\\c.klstate', 'attachment; filename="c.klstate"'],
  ['say "hi".klstate', `attachment; filename="say _hi_.klstate"; filename*=UTF-8''say%20%22hi%22.klstate`],
  [
    "it's (1)*%41.klstate",
    `attachment; filename="it's (1)*_41.klstate"; filename*=UTF-8''it%27s%20%281%29%2A%2541.klstate`,
  ],
  ['../../etc/passwd', 'attachment; filename="passwd"'],
  ['a\r\nset-cookie: x=1.klstate', 'attachment; filename="aset-cookie: x=1.klstate"'],
  ['\ud800.klstate', `attachment; filename="_.klstate"; filename*=UTF-8''%EF%BF%BD.klstate`],
])('the file name %j becomes %s', (name, header) => {
  expect(attachment(name)).toBe(header);
});
