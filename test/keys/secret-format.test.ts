import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { expect, it } from 'vitest';
import {
  hasRightChecksum,
  isInventedSecret,
  issueAdminToken,
  issueLinkToken,
  issueSecret,
} from '../../gateway/shared/secrets.ts';

const page = readFileSync(new URL('../../gateway/keys/secret-format.md', import.meta.url), 'utf8');
const kinds = Array.from(
  page.matchAll(/^\| (a [^|]+) \| `(\w+)` \| `([^`]+)` \|$/gm),
  ([, what, prefix, form]) => ({
    what,
    prefix: prefix ?? '',
    form: new RegExp(form ?? '', 'g'),
  }),
);
const issuers = [issueSecret, issueAdminToken, issueLinkToken];

/** The function of the page. */
async function hasChecksumOfPage(): Promise<(text: string) => boolean> {
  const [, code = ''] = /```js\n(.*?)```/s.exec(page) ?? [];
  const module = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return module.hasRightChecksum;
}

it('the page has a regular expression for secrets, for tokens and for links', () => {
  expect(kinds.map(({ what, prefix }) => [what, prefix])).toEqual([
    ['a secret of an API key', 'tg_'],
    ['a token of the admin API', 'tga_'],
    ['a link to the page of a key holder', 'tgl_'],
  ]);
});

it('the regular expressions find each issued secret or token once, also within other text, and no other kind', () => {
  for (const [index, issue] of issuers.entries()) {
    for (let count = 0; count < 500; count++) {
      const issued = issue();
      for (const text of [
        issued,
        `key=${issued};`,
        `"${issued}"`,
        `https://a.example/?k=${issued}&b`,
        `\n${issued}\n`,
      ]) {
        expect(kinds.map(({ form }) => text.match(form)?.join())).toEqual(
          kinds.map((_, kind) => (kind === index ? issued : undefined)),
        );
      }
    }
  }
});

it('the function of the page accepts each issued secret and token, and decides as the gateway', async () => {
  const hasChecksum = await hasChecksumOfPage();
  for (const issue of issuers) {
    for (let count = 0; count < 500; count++) {
      const issued = issue();
      expect(hasChecksum(issued)).toBe(true);
      const at = 4 + (count % (issued.length - 4));
      const changed = `${issued.slice(0, at)}${issued[at] === 'a' ? 'b' : 'a'}${issued.slice(at + 1)}`;
      for (const text of [issued, changed, issued.slice(1), `${issued}0`, issued.toUpperCase()]) {
        expect([text, hasChecksum(text)]).toEqual([text, hasRightChecksum(text)]);
        if (text.startsWith('tg_')) expect(isInventedSecret(text)).toBe(!hasChecksum(text));
      }
      expect(hasChecksum(changed)).toBe(false);
    }
  }
});

it('the test values of the page are right, and some checksums begin with zeros', async () => {
  const hasChecksum = await hasChecksumOfPage();
  const rows = [...page.matchAll(/^\| `(\w{40})` \| ([\d,]+) \| `(\w{6})` \|$/gm)];
  expect(rows).toHaveLength(4);
  for (const [, random = '', number = '', checksum = ''] of rows) {
    expect(crc32(random).toLocaleString('en')).toBe(number);
    const texts = ['tg_', 'tga_', 'tgl_'].map((prefix) => `${prefix}${random}${checksum}`);
    expect(texts.map(hasChecksum)).toEqual([true, true, true]);
    expect(hasRightChecksum(`tg_${random}${checksum}`)).toBe(true);
  }
  expect(rows.some(([, , , checksum]) => checksum?.startsWith('00'))).toBe(true);
});
