import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';

/**
 * A modal dialog. Esc closes the dialog, and the element that opened it gets the focus again. With `isHeld` the dialog
 * cannot be closed, because the awaited response may contain a secret that no other page shows. `onHeld` is called when
 * the operator tries to close such a dialog; without `onHeld`, the dialog is busy.
 *
 * @param {{ title: string, onClose: () => void, isHeld?: boolean, onHeld?: () => void, children?: any }} props
 */
export function Dialog({ title, onClose, isHeld = false, onHeld, children }) {
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
    if (!isHeld) return;
    event.preventDefault();
    onHeld?.();
  };
  const closed = () => {
    // A second Esc closes a dialog even if the page prevented the default action of the first Esc.
    if (isHeld) element.current?.showModal();
    else onClose();
  };
  const isBusy = isHeld && onHeld === undefined;
  return html`<dialog ref=${element} aria-labelledby="dialog-title" aria-busy=${isBusy} onCancel=${onCancel} onClose=${closed}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
    <button type="button" class="close" aria-label="Close" aria-disabled=${isBusy} onClick=${() => (isHeld ? onHeld?.() : element.current?.close())}>✕</button>
  </dialog>`;
}
