import { useRef, useState } from 'preact/hooks';
import {
  countLine,
  isAccessLine,
  notFoundText,
  parseEntry,
  requestIdStart,
  requestStory,
} from '../../../words/request-story.js';
import { CopyButton, html, Section } from '../parts.js';

/** @import { LinesRead, LogEntry } from '../../../words/request-story.js' */
/** @import { PageProps } from '../live.js' */

/** @typedef {{ entry: LogEntry, story: string }} Found */

/**
 * What happened to a request. Only the access log has single requests, so the operator gives the page a part of the log. The log stays in the
 * browser.
 *
 * @param {PageProps} props
 */
export function Request({ params: { id = '' } }) {
  const [isReading, setReading] = useState(false);
  const [found, setFound] = useState(/** @type {Found | undefined} */ (undefined));
  const [note, setNote] = useState('');
  // A search that ends after a newer one began changes nothing.
  const newest = useRef(0);
  if (!requestIdStart.test(id)) {
    return html`<${Section} title="Request" heading="h1">
      <p class="empty" role="alert">The id of a request is the <code>X-Request-Id</code> of its response. Its first eight characters suffice.</p>
    <//>`;
  }
  const search = async (/** @type {readonly Blob[]} */ parts) => {
    newest.current += 1;
    const own = newest.current;
    setReading(true);
    setFound(undefined);
    setNote('');
    const result = await findIn(parts, id.toLowerCase()).catch(
      (error) => `The log cannot be read. ${error.message}`,
    );
    if (own !== newest.current) return;
    if (typeof result === 'string') setNote(result);
    else setFound(result);
    setReading(false);
  };
  const choose = (/** @type {any} */ { currentTarget }) => search([...currentTarget.files]);
  const paste = (/** @type {any} */ { currentTarget: { value } }) =>
    value.trim() === '' ? undefined : search([new Blob([value])]);
  return html`<${Section} title=${`Request ${id}`} heading="h1" name="request">
    <p class="sentence">The access log has the answer. Choose its file, which may be compressed, or paste its lines. They stay in this browser.</p>
    <p class="sentence muted">The command for the same: <code>tollgate why ${id} --log FILE</code></p>
    <p class="sentence"><input type="file" multiple onChange=${choose} aria-label="Files of the log" /></p>
    <textarea class="lines" rows="4" spellcheck=${false} placeholder="Lines of the log" aria-label="Lines of the log" onInput=${paste}></textarea>
    <p class=${note === '' ? 'muted' : 'near'} role="status">${isReading ? 'Reading …' : note}</p>
    ${
      found &&
      html`<div class="why" role="status">
          <p>${found.story}</p>
          <${CopyButton} text=${found.story} />
        </div>
        <pre class="entry" tabindex="0" aria-label="The line of the log">${JSON.stringify(found.entry, null, 2)}</pre>`
    }
  <//>`;
}

/**
 * @param {readonly Blob[]} parts @param {string} id the whole id in lower case, or its beginning
 * @returns {Promise<Found | string>} or the sentence about what was read
 */
async function findIn(parts, id) {
  /** @type {LinesRead} */
  const read = { lines: 0, entries: 0 };
  /** @type {LogEntry[]} */
  const events = [];
  const member = `"requestId":"${id}`;
  for (const part of parts) {
    for await (const line of linesOf(part)) {
      countLine(read, /"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"/.exec(line)?.[1]);
      if (!line.includes(member)) continue;
      const entry = parseEntry(line);
      if (entry === undefined || !String(entry.requestId).startsWith(id)) continue;
      if (isAccessLine(entry)) return { entry, story: requestStory(entry, events) };
      events.push(entry);
    }
  }
  return notFoundText(id, read);
}

/** A longer line is cut, so that a file without line breaks does not fill the memory. */
const lineCharsMax = 1_000_000;

/** The lines of a text, which may be compressed with gzip (RFC 1952 §2.3.1). @param {Blob} blob */
async function* linesOf(blob) {
  const first = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const isCompressed = first[0] === 0x1f && first[1] === 0x8b;
  const octets = isCompressed ? blob.stream().pipeThrough(new DecompressionStream('gzip')) : blob.stream();
  const reader = octets.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
    const lines = `${rest}${value}`.split('\n');
    rest = (lines.pop() ?? '').slice(0, lineCharsMax);
    yield* lines;
  }
  if (rest !== '') yield rest;
}
