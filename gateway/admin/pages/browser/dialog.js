import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';

/**
 * A question over the page. Esc closes it, and the focus goes back to where it was. While it is held it stays open: what is
 * under way may bring something that is shown nowhere else.
 *
 * @param {{ title: string, onClose: () => void, isHeld?: boolean, children?: any }} props
 */
export function Dialog({ title, onClose, isHeld = false, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = element.current;
    // A browser remembers it too, but forgets it when something else has the focus while a held dialog is opened again.
    const opener = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (opener instanceof HTMLElement) opener.focus({ preventScroll: true });
    };
  }, []);
  const onCancel = (/** @type {Event} */ event) => {
    if (isHeld) event.preventDefault();
  };
  const closed = () => {
    // A second Esc closes a dialog even when the page prevents the first.
    if (isHeld) element.current?.showModal();
    else onClose();
  };
  return html`<dialog ref=${element} aria-labelledby="dialog-title" aria-busy=${isHeld} onCancel=${onCancel} onClose=${closed}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
    <button type="button" class="close" aria-label="Close" aria-disabled=${isHeld} onClick=${() => isHeld || element.current?.close()}>✕</button>
  </dialog>`;
}
