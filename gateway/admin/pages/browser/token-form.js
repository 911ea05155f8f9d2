import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';

/**
 * The form in which the operator enters a token, with instructions to make a token. The token stays in this tab, and is
 * not part of any URL or cookie.
 *
 * @param {{ refusal: string, onToken: (token: string) => void }} props
 */
export function TokenForm({ refusal, onToken }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? '';
    if (token !== '') onToken(token);
  };
  return html`<main class="token" aria-label="Token">
    <h1>Tollgate</h1>
    <p class="refusal" role="alert">${refusal}</p>
    <form onSubmit=${submit}>
      <label for="token">Token of the admin API</label>
      <div class="row">
        <input id="token" ref=${field} type="password" autocomplete="off" spellcheck=${false} required />
        <button type="submit">Open</button>
      </div>
    </form>
    <p>
      <code>npm start</code> prints a token. For any other gateway, create a token on the gateway's machine:
    </p>
    <pre tabindex="0">npm run tollgate -- admin token --name YOUR-NAME --may read</pre>
    <p>
      Put the printed entry under <code>admin.tokens</code> in the configuration. The token works two seconds later. It stays in this
      tab until you close the tab.
    </p>
  </main>`;
}
