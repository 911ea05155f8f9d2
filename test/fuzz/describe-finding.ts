import type { Finding } from './fuzz.ts';

/** Prints a finding: the faults, and then the writes that cause them as escaped strings, one per line. */
export function describeFinding({ pieces, faults }: Finding): string {
  return [
    'fuzz: a finding',
    ...faults.map((fault) => `  - ${fault}`),
    ...(pieces.length > 0
      ? ['  sent, one write a line:', ...pieces.map((piece) => `  ${escaped(piece)}`)]
      : []),
  ].join('\n');
}

/** Latin-1 text as a JavaScript string literal in ASCII. */
function escaped(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
