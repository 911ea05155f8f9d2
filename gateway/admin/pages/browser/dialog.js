import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';

/**
 * A modal dialog. Esc closes the dialog, and the element that opened it gets the focus again. With `isHeld` the dialog
 * cannot be closed, because the awaited response may contain a secret that no other page shows.
 *
 * @param {{ title: string, onClose: () => void, isHeld?: boolean, children?: any }} props
 */
export function Dialog({ title, onClose, isHeld = false, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = element.current;
    // The browser restores the focus when a dialog closes, except after a second call of `showModal`.
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
    // A second Esc closes a dialog even if the page prevented the default action of the first Esc.
    if (isHeld) element.current?.showModal();
    else onClose();
  };
  return html`<dialog ref=${element} aria-labelledby="dialog-title" aria-busy=${isHeld} onCancel=${onCancel} onClose=${closed}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
    <button type="button" class="close" aria-label="Close" aria-disabled=${isHeld} onClick=${() => isHeld || element.current?.close()}>✕</button>
  </dialog>`;
}
