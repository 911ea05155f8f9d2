import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';

/**
 * The user `nobody` has no privileges, like the user in the gateway's container. The switch of users is only needed when tests run as root.
 */
const otherUser = 65_534;

/**
 * Runs a script as a user who is not root. The modules are loaded before the switch of users, because perhaps only root can read the folder
 * of this repository.
 *
 * @returns the output of the script
 */
export async function asOtherUser(modules: readonly string[], script: string): Promise<string> {
  const imports = modules.map((module) => `...(await import(${JSON.stringify(resolve(module))}))`);
  const program = `const modules = { ${imports.join(', ')} };
    if (process.getuid() === 0) { process.setgroups([]); process.setgid(${otherUser}); process.setuid(${otherUser}); }
    ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return output;
}
