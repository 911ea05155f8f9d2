import { useState } from 'preact/hooks';
import { toApiError } from './api.js';
import { html } from './parts.js';

/** Lets the browser save a text as a file. The text is in memory only. @param {string} name @param {string} text */
export function saveFile(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the file after this task.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * A button that reads a whole list and saves it as comma-separated values.
 *
 * @param {{ name: string, read: () => Promise<readonly string[]> }} props `name` of the file, `read` returns its lines
 */
export function CsvButton({ name, read }) {
  const [note, setNote] = useState(/** @type {string | undefined} */ (undefined));
  const [isReading, setReading] = useState(false);
  const save = async () => {
    setReading(true);
    setNote(undefined);
    try {
      saveFile(name, `${(await read()).join('\n')}\n`);
    } catch (error) {
      setNote(`Nothing is saved. ${toApiError(error).message}`);
    }
    setReading(false);
  };
  return html`<button type="button" disabled=${isReading} onClick=${save}>${isReading ? 'Reading …' : 'Download CSV'}</button>
    ${' '}<span class="bad" role="alert">${note}</span>`;
}
