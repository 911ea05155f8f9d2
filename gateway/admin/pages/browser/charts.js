import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { beginOfOutage, chartMarks } from '../../../shared/words/event-names.js';
import { dayMs, figure } from '../../../shared/words/figures.js';
import { axisPeriod, axisTime, fullInstant, periodText } from './formats.js';
import { html } from './parts.js';
import { useTheme } from './theme.js';

/** @import { BodyOf } from '../../wires/api-types.ts' */

/**
 * @typedef {object} Series
 * @property {string} label
 * @property {string} colour the name of a custom property of styles.css, without the dashes
 * @property {(number | undefined)[]} values one for each time; undefined where nothing was recorded
 * @property {boolean} [isDashed]
 * @property {(value: number | undefined) => string} [write] in place of the chart's `write`
 *
 * @typedef {object} Marker an event, as a vertical line in the chart
 * @property {number} atMs
 * @property {string} text
 * @property {boolean} isMinor whether the texts of other events come first
 * @property {number | undefined} [beganMs] the beginning of the outage that ends here, which has a marker of its own
 *
 * @typedef {object} ChartProps
 * @property {string} label what the chart shows, for screen readers
 * @property {number[]} timesMs the beginning of each value's period, evenly spaced except for months
 * @property {number} fromMs
 * @property {number} toMs
 * @property {Series[]} series
 * @property {Series[]} [over] for stacked bars: series that are drawn as lines over the bars
 * @property {'day' | 'month'} [step] the length of a value's period. Without it, the periods are shorter than a day
 * @property {'stacked' | 'lines'} kind `stacked` shows bars with the series on top of each other
 * @property {(value: number | undefined) => string} write formats a value with its unit
 * @property {(value: number) => string} [writeAxis]
 * @property {boolean} [isLog] whether the axis is logarithmic, from 0.1
 * @property {{ steps: { fromMs: number, value: number | undefined }[], label: string } | undefined} [limit] the limit
 * as a line; an undefined value is a gap
 * @property {Marker[]} [markers]
 * @property {{ fromMs: number, untilMs: number }[]} [spans] shaded periods
 * @property {(fromMs: number, toMs: number) => void} [onZoom] called when the operator has selected a period with the
 * pointer
 * @property {(atMs: number) => void} [onPick] called with the beginning of a period that the operator has clicked, or
 * has chosen by the arrow keys and Enter
 * @property {number | undefined} [pickedMs] the beginning of the period that the chart marks
 * @property {string} [note] the text below the chart while there are no figures
 */

const height = 220;
const logFrom = 0.1;
/** A pointer that moves less than this number of CSS pixels clicks, and selects no period. */
const dragMin = 8;
/** uPlot's key for synchronized charts: the pointer selects the same time in all charts of a page. */
const syncKey = 'page';

/**
 * A chart over time. The text below the chart shows the value of each series at the time under the pointer, or at the
 * last time with a value. The space for this text is reserved, so that the page does not move.
 *
 * @param {ChartProps} props
 */
export function Chart(props) {
  const { label, timesMs, series, over = [], step, kind, write, limit, markers = [], note } = props;
  const theme = useTheme();
  const holder = useRef(/** @type {HTMLDivElement | null} */ (null));
  const chart = useRef(/** @type {uPlot | undefined} */ (undefined));
  const latest = useRef(props);
  latest.current = props;
  const [pointed, setPointed] = useState(/** @type {number | undefined} */ (undefined));
  const data = useMemo(() => dataOf(props), [timesMs, series, over, kind]);

  // A change of the chart's appearance makes a new chart. A change of the chart's data or period updates the chart.
  const looks = [...series, ...over].map(({ label, colour }) => [label, colour]);
  const shape = JSON.stringify([theme, kind, step, series.length, looks]);
  useEffect(() => {
    const element = holder.current;
    if (element === null) return undefined;
    const made = new uPlot(
      optionsOf(latest, element.clientWidth, setPointed),
      dataOf(latest.current),
      element,
    );
    chart.current = made;
    const { over } = made;
    let downAt = 0;
    over.addEventListener('pointerdown', ({ clientX }) => {
      downAt = clientX;
    });
    over.addEventListener('click', ({ clientX }) => {
      if (Math.abs(clientX - downAt) < dragMin) pickAt(latest.current, indexUnder(made, latest.current));
    });
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0 && element.clientWidth !== made.width) {
        made.setSize({ width: element.clientWidth, height });
      }
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      chart.current = undefined;
    };
  }, [shape]);
  useEffect(() => {
    chart.current?.setData(data);
  }, [data, props.fromMs, props.toMs, JSON.stringify(limit?.steps), markers.length, props.pickedMs]);

  const last = lastKnown(series);
  const shown = pointed ?? last;
  const atMs = shown === undefined ? undefined : timesMs[shown];
  const plot = isSlider(props)
    ? html`<div class="plot" ref=${holder} ...${sliderOf(props, shown)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => moveByKey(event, props, chart.current, shown)}></div>`
    : html`<div class="plot" ref=${holder} role="img" aria-label=${label}></div>`;
  return html`<figure class="chart">
    ${plot}
    <figcaption>
      <span class=${atMs === undefined ? 'note' : 'at'} title=${atMs === undefined ? '' : fullInstant(atMs)}
        >${atMs === undefined ? note : periodText(step, atMs, Date.now())}</span
      >
      ${[...series, ...over].map(
        (one) => html`<span class="legend" key=${one.label}>
          <i class=${`swatch ${one.colour} ${kind === 'lines' || over.includes(one) ? 'line' : ''} ${one.isDashed ? 'dashed' : ''}`}></i>${one.label}
          <b>${(one.write ?? write)(shown === undefined ? undefined : one.values[shown])}</b>
        </span>`,
      )}
      ${limit && html`<span class="legend of-limit"><i class="swatch limit"></i>${limit.label}</span>`}
    </figcaption>
  </figure>`;
}

/** @param {ChartProps} props */
function isSlider({ onPick, step }) {
  return onPick !== undefined || step !== undefined;
}

/**
 * A chart of days or months, or a chart whose periods can be picked, is a slider over time for keyboards and screen
 * readers.
 *
 * @param {ChartProps} props @param {number | undefined} shown
 */
function sliderOf({ label, timesMs, series, over = [], step, onPick, write }, shown = timesMs.length - 1) {
  const figures = [...series, ...over]
    .map(({ label, values, write: own = write }) => `${label} ${own(values[shown])}`)
    .join(', ');
  return {
    role: 'slider',
    tabindex: 0,
    'aria-label': `${label}. Arrow keys choose a time${onPick ? ', Enter explains it' : ''}.`,
    'aria-valuemin': 0,
    'aria-valuemax': timesMs.length - 1,
    'aria-valuenow': shown,
    'aria-valuetext': `${step ? periodText(step, timesMs[shown] ?? 0, 0) : fullInstant(timesMs[shown] ?? 0)}: ${figures}`,
  };
}

/** How far each key moves the chosen time. @type {Readonly<Record<string, number>>} */
const stepsOfKey = {
  ArrowLeft: -1,
  ArrowRight: 1,
  PageDown: -10,
  PageUp: 10,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/**
 * Moves the cursor of a chart by the keyboard. Enter and the space bar pick the time under the cursor.
 *
 * @param {KeyboardEvent} event
 * @param {ChartProps} props
 * @param {uPlot | undefined} chart
 * @param {number | undefined} shown the index of the time that the chart shows
 */
function moveByKey(event, props, chart, shown = props.timesMs.length - 1) {
  if (event.ctrlKey || event.metaKey || event.altKey || chart === undefined) return;
  const steps = stepsOfKey[event.key];
  if (steps === undefined && event.key !== 'Enter' && event.key !== ' ') return;
  event.preventDefault();
  if (steps === undefined) {
    pickAt(props, shown);
    return;
  }
  const index = Math.min(Math.max(shown + steps, 0), props.timesMs.length - 1);
  const middleMs = (props.timesMs[index] ?? 0) + stepOf(props) / 2;
  chart.setCursor({ left: chart.valToPos(middleMs / 1_000, 'x'), top: 0 });
}

/** @param {ChartProps} props @param {number | undefined} index */
function pickAt({ onPick, timesMs }, index) {
  const atMs = index === undefined ? undefined : timesMs[index];
  if (atMs !== undefined) onPick?.(atMs);
}

/** Returns the length of a period in the chart, ms. @param {ChartProps} props */
function stepOf({ timesMs: [first = 0, second = first] }) {
  return second - first;
}

/**
 * Returns the index of the time under the cursor. A bar begins at its time, so a bar is found by its whole width, and a
 * point of a line by the smallest distance.
 *
 * @param {uPlot} u @param {ChartProps} props @returns {number | undefined}
 */
function indexUnder({ cursor: { left = -1, idx }, posToVal }, props) {
  if (left < 0) return undefined;
  if (props.kind === 'lines' || props.timesMs.length < 2) return idx ?? undefined;
  const pointedMs = posToVal(left, 'x') * 1_000;
  return Math.max(
    props.timesMs.findLastIndex((atMs) => atMs <= pointedMs),
    0,
  );
}

/** Returns the index of the last time with a known value. @param {Series[]} series */
function lastKnown(series) {
  const length = series[0]?.values.length ?? 0;
  for (let index = length - 1; index >= 0; index--) {
    if (series.some(({ values }) => values[index] !== undefined)) return index;
  }
  return undefined;
}

/** @param {ChartProps} props @returns {uPlot.AlignedData} */
function dataOf({ timesMs, series, over = [], kind, isLog }) {
  const times = timesMs.map((atMs) => atMs / 1_000);
  if (kind === 'lines') {
    const lines = series.map(({ values }) =>
      values.map((value) => (value === undefined ? null : isLog ? Math.max(logFrom, value) : value)),
    );
    return /** @type {uPlot.AlignedData} */ ([times, ...lines]);
  }
  // Each stacked value is the sum of its own series and of all series below it. The highest sum is drawn first, and the
  // lower sums are drawn over it.
  /** @type {(number | null)[][]} */
  const sums = [];
  for (const { values } of series) {
    const below = sums[0];
    sums.unshift(values.map((value, index) => (value === undefined ? null : value + (below?.[index] ?? 0))));
  }
  const lines = over.map(({ values }) => values.map((value) => value ?? null));
  return /** @type {uPlot.AlignedData} */ ([times, ...sums, ...lines]);
}

/**
 * Returns the options of uPlot. The function is long because it returns one large object literal.
 *
 * @param {{ current: ChartProps }} latest
 * @param {number} width
 * @param {(index: number | undefined) => void} point
 * @returns {uPlot.Options}
 */
function optionsOf(latest, width, point) {
  const { kind, series, over = [], isLog = false } = latest.current;
  const colours = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => colours.getPropertyValue(`--${name}`).trim();
  const drawn = kind === 'stacked' ? series.toReversed() : series;
  const bars = uPlot.paths.bars?.({ align: 1, size: [0.9, 100, 1] });
  // A step of the line is as wide as a bar.
  const steps = uPlot.paths.stepped?.({ align: 1 });
  return {
    width: Math.max(width, 100),
    height,
    legend: { show: false },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1_000), 'Etc/UTC'),
    // The space above the plot is for the texts of events, which would otherwise cover bars.
    padding: [latest.current.markers ? 8 + markerRows * markerRowHeight : 12, 20, 0, 0],
    scales: {
      x: { time: true, range: () => [latest.current.fromMs / 1_000, latest.current.toMs / 1_000] },
      y: {
        distr: isLog ? 3 : 1,
        range: (_, __, highest) =>
          isLog ? logRange(highest) : linearRange(highest, latest.current.limit?.steps ?? []),
      },
    },
    series: [
      {},
      ...drawn.map((one) => ({
        label: one.label,
        stroke: colour(one.colour),
        ...(kind === 'stacked'
          ? { fill: colour(one.colour), width: 0, ...(bars && { paths: bars }), points: { show: false } }
          : { width: 2, dash: one.isDashed ? [6, 4] : [], points: { size: 5, filter: lonely } }),
      })),
      ...over.map((one) => ({
        label: one.label,
        stroke: colour(one.colour),
        width: 2,
        dash: one.isDashed ? [6, 4] : [],
        ...(steps && { paths: steps }),
        points: { show: false },
      })),
    ],
    axes: [
      {
        stroke: colour('muted'),
        font: axisFont,
        grid: { stroke: colour('line'), width: 1 },
        ticks: { stroke: colour('line'), width: 1, size: 4 },
        space: 70,
        size: 30,
        values: (_, splits) => splits.map((at, index) => axisLabel(latest.current, at * 1_000, index === 0)),
      },
      {
        stroke: colour('muted'),
        font: axisFont,
        // A logarithmic axis has labels and grid lines only at powers of ten.
        grid: { stroke: colour('line'), width: 1, ...(isLog && { filter: powersOfTen }) },
        ...(isLog && { filter: powersOfTen }),
        ticks: { show: false },
        size: 58,
        ...(latest.current.write === figure && { incrs: wholeSteps }),
        values: (_, splits) => splits.map((value) => axisValue(latest.current, value)),
      },
    ],
    cursor: {
      sync: { key: syncKey },
      drag: { x: latest.current.onZoom !== undefined, y: false, setScale: false },
      points: { show: kind === 'lines' },
    },
    hooks: {
      setCursor: [(u) => point(indexUnder(u, latest.current))],
      setSelect: [
        (u) => {
          if (u.select.width < dragMin) return;
          const from = u.posToVal(u.select.left, 'x') * 1_000;
          const to = u.posToVal(u.select.left + u.select.width, 'x') * 1_000;
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          latest.current.onZoom?.(from, to);
        },
      ],
      drawClear: [(u) => drawSpans(u, latest.current, colour('span'))],
      draw: [
        (u) =>
          drawLines(u, latest.current, {
            limit: colour('limit'),
            picked: colour('text'),
            marker: colour('marker'),
            ground: colour('ground'),
          }),
      ],
    },
  };
}

const axisFont = '12px system-ui, sans-serif';
/** The number of rows for event texts above the plot, and the height of a row in CSS pixels. */
const markerRows = 2;
const markerRowHeight = 14;

/**
 * Returns the indexes of values that lie between two gaps. The chart draws such a value as a point, because a line
 * needs two values.
 */
function lonely(/** @type {uPlot} */ u, /** @type {number} */ index) {
  const values = u.data[index] ?? [];
  return [...values.keys()].filter(
    (at) => values[at] != null && values[at - 1] == null && values[at + 1] == null,
  );
}

/** @param {number | null} largest @returns {[number, number]} */
function logRange(largest) {
  return [logFrom, 10 ** Math.ceil(Math.log10(Math.max(largest ?? 1, 1) * 1.01))];
}

/** @param {number | null} largest @param {{ value: number | undefined }[]} limits @returns {[number, number]} */
function linearRange(largest, limits) {
  const highest = Math.max(largest ?? 0, 0);
  // A limit far above the values would flatten the chart, so it is omitted. The label of the chart still names the
  // limit.
  const near = limits.map(({ value = 0 }) => value).filter((value) => value <= Math.max(highest * 4, 1));
  return [0, Math.max(...near, highest, 1) * 1.08];
}

/** The possible steps of an axis of counts. The smallest step is one, because the labels are whole numbers. */
const wholeSteps = Array.from({ length: 16 }, (_, power) => 10 ** power).flatMap((ten) => [
  ten,
  2 * ten,
  5 * ten,
]);

/**
 * The first time names the zone. In a chart of days or months, a time at which no bar begins gets no label.
 *
 * @param {ChartProps} props @param {number} atMs @param {boolean} isFirst
 */
function axisLabel({ step, toMs }, atMs, isFirst) {
  if (step === undefined) return `${axisTime(atMs)}${isFirst ? ' UTC' : ''}`;
  return atMs < toMs && !(step === 'day' && atMs % dayMs !== 0) ? axisPeriod(step, atMs) : '';
}

/** @param {ChartProps} props @param {number | null} value */
function axisValue({ writeAxis, write }, value) {
  return value === null ? '' : (writeAxis ?? write)(value);
}

/** @param {uPlot} _ @param {number[]} splits */
function powersOfTen(_, splits) {
  return splits.map((value) => (Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6) ? value : null));
}

/** @param {uPlot} u @param {ChartProps} props @param {string} colour */
function drawSpans({ ctx, bbox, valToPos }, { spans = [] }, colour) {
  ctx.save();
  ctx.fillStyle = colour;
  for (const { fromMs, untilMs } of spans) {
    const left = Math.max(valToPos(fromMs / 1_000, 'x', true), bbox.left);
    const right = Math.min(valToPos(untilMs / 1_000, 'x', true), bbox.left + bbox.width);
    if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  ctx.restore();
}

/**
 * @param {uPlot} u @param {ChartProps} props
 * @param {{ limit: string, picked: string, marker: string, ground: string }} colours
 */
function drawLines(u, props, colours) {
  const { limit, markers = [] } = props;
  const { ctx, bbox, scales, valToPos } = u;
  ctx.save();
  drawPicked(u, props, colours.picked);
  drawMarkers(u, markers, colours);
  ctx.setLineDash([]);
  ctx.strokeStyle = colours.limit;
  ctx.beginPath();
  const right = bbox.left + bbox.width;
  const xOf = (/** @type {number} */ atMs) =>
    Math.min(Math.max(valToPos(atMs / 1_000, 'x', true), bbox.left), right);
  // A limit above the plot is not drawn.
  const heightOf = (/** @type {number | undefined} */ value) =>
    value === undefined || value > (scales.y?.max ?? 0) ? undefined : valToPos(value, 'y', true);
  const { steps = [] } = limit ?? {};
  for (const [index, { fromMs, value }] of steps.entries()) {
    const [y, before] = [heightOf(value), heightOf(steps[index - 1]?.value)];
    if (y === undefined) continue;
    const [from, until] = [xOf(fromMs), xOf(steps[index + 1]?.fromMs ?? Number.MAX_VALUE)];
    if (until === from) continue;
    if (before === undefined || from === bbox.left) ctx.moveTo(from, y);
    else ctx.lineTo(from, y);
    ctx.lineTo(until, y);
  }
  ctx.stroke();
  ctx.restore();
}

/** Draws a frame around the picked period. @param {uPlot} u @param {ChartProps} props @param {string} colour */
function drawPicked({ ctx, bbox, valToPos }, props, colour) {
  const { pickedMs } = props;
  if (pickedMs === undefined) return;
  const pixel = devicePixelRatio || 1;
  const [left, right] = [pickedMs, pickedMs + stepOf(props)].map((atMs) => valToPos(atMs / 1_000, 'x', true));
  if (left === undefined || right === undefined || right <= bbox.left || left >= bbox.left + bbox.width)
    return;
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2 * pixel;
  ctx.strokeRect(left, bbox.top + pixel, Math.max(right - left, 2 * pixel), bbox.height - pixel);
}

/** @param {uPlot} u @param {Marker[]} markers @param {{ marker: string, ground: string }} colours */
function drawMarkers({ ctx, bbox, valToPos }, markers, colours) {
  const pixel = devicePixelRatio || 1;
  const gap = 4 * pixel;
  const rowHeight = markerRowHeight * pixel;
  const top = bbox.top - markerRows * rowHeight;
  const right = bbox.left + bbox.width;
  const placeOf = (/** @type {number} */ atMs) => Math.round(valToPos(atMs / 1_000, 'x', true));
  const placed = markers
    .toSorted((a, b) => Number(a.isMinor) - Number(b.isMinor) || b.atMs - a.atMs)
    .map(({ atMs, text, beganMs }) => ({ text, x: placeOf(atMs), beganX: beganMs && placeOf(beganMs) }))
    .filter(({ x }) => x >= bbox.left && x <= right);
  ctx.lineWidth = Math.max(1, Math.round(1.5 * pixel));
  ctx.setLineDash([2 * pixel, 3 * pixel]);
  ctx.strokeStyle = colours.marker;
  ctx.beginPath();
  for (const { x } of placed) {
    ctx.moveTo(x, top);
    ctx.lineTo(x, bbox.top + bbox.height);
  }
  ctx.stroke();
  ctx.font = `${11 * pixel}px system-ui, sans-serif`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  // The newest text is placed first. A text is omitted if the chart has no space for it. The list of events still shows
  // the event.
  const rows = Array.from({ length: markerRows }, () => /** @type {{ from: number, to: number }[]} */ ([]));
  for (const { text, x, beganX } of placed) {
    // An outage that is too short for the chart has one text, so that it hides no other text.
    if (beganX !== undefined && x - beganX < gap) continue;
    const { width } = ctx.measureText(text);
    const isFree = (/** @type {{ from: number, to: number }[]} */ taken, /** @type {number} */ start) =>
      start >= bbox.left &&
      start + width <= right &&
      taken.every(
        ({ from, to }) => Math.max(start + width, x) + gap <= from || Math.min(start, x) - gap >= to,
      );
    const [place] = rows.flatMap((taken, row) =>
      [x + gap, x - gap - width].filter((start) => isFree(taken, start)).map((start) => ({ start, row })),
    );
    if (place === undefined) continue;
    const { start, row } = place;
    ctx.fillStyle = colours.ground;
    ctx.fillRect(start - 2 * pixel, top + row * rowHeight, width + 4 * pixel, rowHeight);
    ctx.fillStyle = colours.marker;
    ctx.fillText(text, start, top + row * rowHeight + 11 * pixel);
    rows[row]?.push({ from: Math.min(start, x), to: Math.max(start + width, x) });
  }
}

/**
 * Divides a period into steps, and merges the rows of each step. The result is undefined for a step without rows.
 *
 * @template Row, Merged
 * @param {Map<number, Row> | undefined} rows by the beginning of their minute, epoch ms
 * @param {{ fromMs: number, toMs: number, stepMs: number, merge: (rows: [Row, ...Row[]]) => Merged }} options
 * @returns {{ timesMs: number[], found: (Merged | undefined)[] }}
 */
export function alongTime(rows = new Map(), { fromMs, toMs, stepMs, merge }) {
  const groups = Map.groupBy(rows, ([atMs]) => Math.floor(atMs / stepMs));
  const first = Math.floor(fromMs / stepMs);
  const timesMs = Array.from(
    { length: Math.ceil(toMs / stepMs) - first },
    (_, step) => (first + step) * stepMs,
  );
  const found = timesMs.map((atMs) => {
    const [row, ...others] = (groups.get(atMs / stepMs) ?? []).map(([, row]) => row);
    return row && merge([row, ...others]);
  });
  return { timesMs, found };
}

/**
 * Returns the periods without a value that begin before a time, for `spans`.
 *
 * @param {number[]} timesMs @param {readonly unknown[]} values one for each time
 * @param {number | undefined} untilMs undefined: the periods without a value have zeros
 */
export function unknownSpans(timesMs, values, untilMs = Number.NEGATIVE_INFINITY) {
  /** @type {{ fromMs: number, untilMs: number }[]} */
  const spans = [];
  for (const [index, fromMs] of timesMs.entries()) {
    if (values[index] !== undefined || fromMs >= untilMs) continue;
    const endMs = Math.min(timesMs[index + 1] ?? untilMs, untilMs);
    const last = spans.at(-1);
    if (last?.untilMs === fromMs) last.untilMs = endMs;
    else spans.push({ fromMs, untilMs: endMs });
  }
  return spans;
}

/** @type {Readonly<Record<string, string>>} */
const beginOf = beginOfOutage;

/**
 * Returns the marks of an event: its beginning and its end, if it is an outage that has ended.
 *
 * @param {BodyOf<'/events'>['events'][number]} event
 * @returns {Marker[]}
 */
export function markersOf({ at, beganAt, endedAt = at, group, kind, target, upstream, server }) {
  const subject = target ?? upstream ?? server;
  const mark = (
    /** @type {string} */ at,
    /** @type {string | undefined} */ kind = '',
    /** @type {number | undefined} */ beganMs = undefined,
  ) =>
    kind in chartMarks
      ? [
          {
            atMs: Date.parse(at),
            text: [chartMarks[kind], subject].filter(Boolean).join(' '),
            isMinor: group === 'change',
            beganMs,
          },
        ]
      : [];
  if (beganAt === undefined) return mark(at, kind);
  return [...mark(beganAt, beginOf[kind]), ...mark(endedAt, kind, Date.parse(beganAt))];
}
