import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';

/** `nobody`, without privileges, as the gateway's container has a user; a test that is not run as root needs none. */
const otherUser = 65_534;

/**
 * What a script prints as a user who is not root. The modules it names are loaded while it is still root, since the
 * clone may be in a folder that only root may enter.
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
