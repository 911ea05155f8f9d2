import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';

/** A question over the page. Esc closes it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onClose=${onClose}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
    <button type="button" class="close" aria-label="Close" onClick=${() => element.current?.close()}>✕</button>
  </dialog>`;
}
