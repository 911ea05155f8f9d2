import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { lackingText, missingText } from '../../words/list.js';
import { forgetMissing, forgetToken, hasToken, keepToken, missingHere, whenRefused } from './api.js';
import { Header } from './header.js';
import { listenToKeys } from './keyboard.js';
import { useLive } from './live.js';
import { html } from './parts.js';
import { followLinks, usePlace } from './router.js';
import { routes } from './routes.js';

/** The root component: the header and the page of the URL, or the form for a token. */
function App() {
  const [isAllowed, setAllowed] = useState(hasToken());
  const [refusal, setRefusal] = useState('');
  const { page, query, path } = usePlace();
  const live = useLive(isAllowed);
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const shownPath = useRef(path);

  useEffect(() => {
    whenRefused((message) => {
      forgetToken();
      setRefusal(message);
      setAllowed(false);
    });
  }, []);

  const route = page && routes[page.name];
  const title = page && route ? route.title(page.params) : 'Not found';
  useEffect(() => {
    document.title = `${title} · Tollgate`;
    // When the operator opens another page, the focus moves to the page's beginning.
    if (shownPath.current !== path) {
      main.current?.focus({ preventScroll: true });
      forgetMissing();
    }
    shownPath.current = path;
  }, [title, path]);
  const isAway = live.state?.store.available === false;
  useEffect(() => {
    if (!isAway) forgetMissing();
  }, [isAway]);

  if (!isAllowed) {
    const enter = (/** @type {string} */ token) => {
      keepToken(token);
      setRefusal('');
      setAllowed(true);
    };
    return html`<${TokenForm} refusal=${refusal} onToken=${enter} />`;
  }
  const Page = route?.component ?? NotFound;
  const store = live.state?.store;
  // The verdict on the page Now names Redis already.
  const textOfMissing = page?.name === 'now' ? lackingText : missingText;
  return html`
    <a class="skip" href="#main">Skip to the page</a>
    <${Header} live=${live} open=${page?.name} />
    <main id="main" tabindex="-1" ref=${main} aria-label=${title}>
      ${store?.available === false && html`<p class="near missing" role="status">${textOfMissing({ ...store, ...missingHere })}</p>`}
      <${Page} key=${path} params=${page?.params ?? {}} query=${query} live=${live} />
    </main>
  `;
}

/**
 * The form in which the operator enters a token, with instructions to make a token. The token stays in this tab, and is
 * not part of any URL or cookie.
 *
 * @param {{ refusal: string, onToken: (token: string) => void }} props
 */
function TokenForm({ refusal, onToken }) {
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
      The demo (<code>npm start</code>) prints a token. For any other gateway, create a token on the gateway's machine:
    </p>
    <pre tabindex="0">tollgate admin token --name YOUR-NAME --may read</pre>
    <p>In a clone of the repository, write <code>npm run tollgate --</code> in place of <code>tollgate</code>.</p>
    <p>
      Put the printed entry under <code>admin.tokens</code> in the configuration. The token works two seconds later. It stays in this
      tab until you close the tab.
    </p>
  </main>`;
}

function NotFound() {
  return html`<p class="empty">There is no such page. <a href="/">Go to Now</a>.</p>`;
}

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);
followLinks();
listenToKeys();
