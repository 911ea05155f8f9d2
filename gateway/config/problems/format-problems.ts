import type { Place, Problem } from './problem.ts';

/** `file:line:column: message`, the line itself, and a caret below the place. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join('\n\n');
}

function formatProblem(problem: Problem): string {
  const lines = [formatPlace(problem, problem.message)];
  if (problem.related) lines.push(formatPlace(problem.related, problem.related.message));
  return lines.join('\n');
}

function formatPlace({ file, line, column, excerpt }: Place, message: string): string {
  const head = `${file}:${line}:${column}: ${message}`;
  if (excerpt.trim() === '' || column > excerpt.length + 1) return head;
  const number = String(line);
  const gutter = ' '.repeat(number.length);
  // Tabs are kept, so that the caret line has the same indentation.
  const indent = excerpt.slice(0, column - 1).replace(/[^\t]/g, ' ');
  return `${head}\n  ${number} | ${excerpt}\n  ${gutter} | ${indent}^`;
}
