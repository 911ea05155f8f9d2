/** What looks like a secret in a line of configuration, though it does not belong there in the clear. */
const secretShapes = [
  // The user information of a URL: redis://:password@host
  /(?<=:\/\/)[^\s/@]+(?=@)/g,
  // A secret of ours that was pasted where its digest belongs.
  /\btg_\w+/g,
  // Whatever a field of such a name holds; a digest is no secret.
  /(?<=\b(?:sha256|secret|password|token)["']?\s*:\s*["']?)(?![0-9a-fA-F]{64}\b|\$\{)[^\s"',}]+/gi,
];

/** Replaces what looks like a secret by as many asterisks, so that a caret below the line still points right. */
export function maskSecrets(line: string): string {
  return secretShapes.reduce(
    (masked, shape) => masked.replace(shape, (secret) => '*'.repeat(secret.length)),
    line,
  );
}
