/** Texts that look like a secret, for the files and settings that should hold none: the API document, settings other than `keys`. */
const secretShapes = [
  // The user information of a URL, up to the last @ of the line: a password may hold any character.
  /(?<=:\/\/).+(?=@)/g,
  // The parameters of a URL: redis://redis?password=…
  /(?<=[?&][\w-]+=)[^\s&"']+/g,
  // A secret of a key, or a token of the admin API, that this program has issued.
  /\btga?_\w+/g,
  // The rest of the line behind a field with such a name: a password may hold any character.
  /(?<=\b(?:sha256|secrets?|password|tokens?)["']?\s*:\s*)\S.*/gi,
];

/** Replaces each by as many asterisks, so that a caret below the line still points at its place. */
export function maskSecrets(line: string): string {
  return secretShapes.reduce(
    (masked, shape) => masked.replace(shape, (secret) => '*'.repeat(secret.length)),
    line,
  );
}
