import { deadSecretList } from '../../../../words/dead-secrets.js';
import { usePolled } from '../../api.js';
import { listHead, listTable } from '../../list.js';
import { html, keyLink, Section, useNow } from '../../parts.js';

/**
 * The secrets that are not valid but in use. The section is absent if the record has no such secret of a key, so a page without
 * trouble has no empty section. Requests with unknown secrets alone are usual for a public gateway.
 */
export function DeadSecrets() {
  const now = useNow();
  const polled = usePolled('/dead-secrets', 30_000);
  const { body } = polled;
  if (body === undefined) return null;
  const { secrets, others, missing } = body;
  if (secrets.length === 0 && others === undefined && missing === undefined) return null;
  return html`<${Section} title="Dead secrets in use" polled=${polled} name="dead-secrets">
    ${listHead(deadSecretList, body, now)}
    ${listTable(deadSecretList, polled, {
      asked: { filter: {} },
      now,
      key: 'dead-secrets',
      cells: {
        key: {
          kind: 'id',
          cell: ({ key, name, text }) => (key === undefined ? text : keyLink({ id: key, name })),
        },
      },
    })}
  <//>`;
}
