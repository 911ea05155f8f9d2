import { oldSecretList } from '../../../../words/old-secrets.js';
import { usePolled } from '../../api.js';
import { listHead, listTable } from '../../list.js';
import { html, keyLink, Section, useNow } from '../../parts.js';

const everyMs = 120_000;

/** The owners that have not moved to their new secret yet. The section is absent without such an owner. */
export function OldSecrets() {
  const now = useNow();
  const polled = usePolled('/old-secrets', everyMs);
  const { body } = polled;
  if (body === undefined || body.secrets.length === 0) return null;
  return html`<${Section} title="Old secrets still in use" polled=${polled} name="old-secrets">
    ${listHead(oldSecretList, body, now)}
    ${listTable(oldSecretList, polled, {
      asked: { filter: {} },
      now,
      key: 'old-secrets',
      cells: { key: { kind: 'id', cell: ({ key, name }) => keyLink({ id: key, name }) } },
    })}
  <//>`;
}
