import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { missingText } from '../../words/list.js';
import { forgetToken, hasToken, keepToken, whenRefused } from './api.js';
import { Header } from './header.js';
import { listenToKeys } from './keyboard.js';
import { useLive } from './live.js';
import { html } from './parts.js';
import { followLinks, usePlace } from './router.js';
import { routes } from './routes.js';
import { TokenForm } from './token-form.js';

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
    if (shownPath.current !== path) main.current?.focus({ preventScroll: true });
    shownPath.current = path;
  }, [title, path]);

  if (!isAllowed) {
    const enter = (/** @type {string} */ token) => {
      keepToken(token);
      setRefusal('');
      setAllowed(true);
    };
    return html`<${TokenForm} refusal=${refusal} onToken=${enter} />`;
  }
  const Page = route?.component ?? NotFound;
  // The page Now says it in its verdict.
  const store = page?.name === 'now' ? undefined : live.state?.store;
  return html`
    <a class="skip" href="#main">Skip to the page</a>
    <${Header} live=${live} open=${page?.name} />
    <main id="main" tabindex="-1" ref=${main} aria-label=${title}>
      ${store?.available === false && html`<p class="near" role="status">${missingText(store)}</p>`}
      <${Page} key=${path} params=${page?.params ?? {}} query=${query} live=${live} />
    </main>
  `;
}

function NotFound() {
  return html`<p class="empty">There is no such page. <a href="/">Go to Now</a>.</p>`;
}

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);
followLinks();
listenToKeys();
