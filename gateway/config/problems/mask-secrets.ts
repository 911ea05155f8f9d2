/** Patterns of secrets. They apply to parts that should have no secrets: the API document, and settings other than `keys`. */
const secretShapes = [
  // The user information of a URL, up to the last @ in the line, because a password may contain any character.
  /(?<=:\/\/).+(?=@)/g,
  // Query parameters of a URL, such as redis://redis?password=…
  /(?<=[?&][\w-]+=)[^\s&"']+/g,
  // A key's secret or an admin token that Tollgate has issued.
  /\btga?_\w+/g,
  // The rest of the line after a field with one of these names, because a password may contain any character.
  /(?<=\b(?:sha256|secrets?|password|tokens?)["']?\s*:\s*)\S.*/gi,
];

/** Replaces each character of a secret by an asterisk, so that a caret below the line still points to the right place. */
export function maskSecrets(line: string): string {
  return secretShapes.reduce(
    (masked, shape) => masked.replace(shape, (secret) => '*'.repeat(secret.length)),
    line,
  );
}
