import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { freePort } from './free-port.ts';
import { requireProgram } from './require-program.ts';
import { until } from './until.ts';

export interface Prometheus {
  /** The samples of an instant query, with labels and value. */
  query(expression: string): Promise<readonly PrometheusSample[]>;
  /** Every rule that Prometheus has loaded, and whether its last evaluation succeeded. */
  rules(): Promise<readonly { readonly name: string; readonly health: string }[]>;
  stop(): Promise<void>;
}

interface PrometheusSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface ShippedConfig {
  readonly global: Readonly<Record<string, unknown>>;
  readonly scrape_configs: readonly Readonly<Record<string, unknown>>[];
}

const shipped = fileURLToPath(new URL('../../config/observe/', import.meta.url));

/**
 * Starts a real Prometheus with the shipped configuration and rules. The test replaces only the addresses of the gateways, and sets the
 * scrape interval to one second.
 *
 * @param hosts hosts of the gateways' admin listeners, each with its port
 */
export async function startPrometheus(hosts: readonly string[]): Promise<Prometheus> {
  const binary = await requireProgram({
    names: ['prometheus'],
    packageName: 'prometheus',
    advice: 'prometheus is missing: install Prometheus',
  });
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-prometheus-'));
  const { global, scrape_configs } = parse(
    await readFile(`${shipped}prometheus.yml`, 'utf8'),
  ) as ShippedConfig;
  const config = {
    global: { ...global, scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [`${shipped}alerts.yml`],
    scrape_configs: scrape_configs.map(({ dns_sd_configs: _found, ...job }) => ({
      ...job,
      static_configs: [{ targets: hosts }],
    })),
  };
  const configFile = join(folder, 'prometheus.yml');
  await writeFile(configFile, stringify(config));

  const port = await freePort();
  const child = spawn(
    binary,
    [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr.on('data', (chunk) => {
    log += chunk;
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus has ended:\n${log}`);
    return fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await until('Prometheus is ready', isReady);

  async function ask<Data>(path: string): Promise<Data> {
    const response = await fetch(`${url}/api/v1/${path}`);
    const answer = (await response.json()) as { readonly status: string; readonly data: Data };
    if (answer.status !== 'success') throw new Error(`Prometheus: ${JSON.stringify(answer)}`);
    return answer.data;
  }

  return {
    async query(expression) {
      const { result } = await ask<{
        result: readonly { metric: Record<string, string>; value: [number, string] }[];
      }>(`query?query=${encodeURIComponent(expression)}`);
      return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
    },
    async rules() {
      const { groups } = await ask<{
        groups: readonly { rules: readonly { name: string; health: string }[] }[];
      }>('rules');
      return groups.flatMap(({ rules }) => rules);
    },
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}
