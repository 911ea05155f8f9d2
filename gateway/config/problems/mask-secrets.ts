/** What looks like a secret where none belongs: in the API document and in the settings other than `keys`. */
const secretShapes = [
  // The user information of a URL, up to the last @ of the line: a password may hold any character.
  /(?<=:\/\/).+(?=@)/g,
  // The parameters of a URL: redis://redis?password=…
  /(?<=[?&][\w-]+=)[^\s&"']+/g,
  // A secret of ours.
  /\btg_\w+/g,
  // All that follows a field of such a name: a password may hold any character.
  /(?<=\b(?:sha256|secrets?|password|token)["']?\s*:\s*)\S.*/gi,
];

/** Replaces what looks like a secret by as many asterisks, so that a caret below the line still points right. */
export function maskSecrets(line: string): string {
  return secretShapes.reduce(
    (masked, shape) => masked.replace(shape, (secret) => '*'.repeat(secret.length)),
    line,
  );
}
