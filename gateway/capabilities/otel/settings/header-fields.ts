import { tokenForm } from '../../../shared/http/field-grammar.ts';

/** Something wrong in a line, which is counted from 1. No message quotes the line, because it may have a token. */
interface LineFault {
  readonly line: number;
  readonly message: string;
}

export interface ReadFields {
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly faults: readonly LineFault[];
}

const fieldsMax = 20;
const lineCharsMax = 8_192;
const valuePattern = /^[\x20-\x7e\t]+$/;

/** Fields that the gateway or Node sets. */
const ownFields: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'expect',
  'upgrade',
  'te',
  'trailer',
  'keep-alive',
  'user-agent',
]);

/** Reads a file with one `Name: value` a line. Empty lines and lines that begin with `#` are skipped. */
export function readHeaderLines(text: string): ReadFields {
  const headers: Record<string, string> = {};
  const faults: LineFault[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const colon = line.indexOf(':');
    const message =
      colon === -1
        ? 'this line has no colon; write `Name: value`'
        : addField(headers, line.slice(0, colon), line.slice(colon + 1));
    if (message !== undefined) faults.push({ line: index + 1, message });
  }
  if (faults.length === 0 && Object.keys(headers).length === 0)
    faults.push({ line: 1, message: 'this file has no header field; write `Name: value`' });
  return { headers, faults };
}

/**
 * Reads `name=value,name=value` with percent-encoded values: OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES. The environment
 * variables have the form of W3C Baggage (OpenTelemetry, "OTLP Exporter" §Specifying headers, and "Resource SDK" §Specifying resource
 * information via an environment variable).
 *
 * @returns undefined if the text does not have this form
 */
export function readPairs(text: string): readonly (readonly [name: string, value: string])[] | undefined {
  const pairs: (readonly [string, string])[] = [];
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const equals = part.indexOf('=');
    const name = part.slice(0, equals).trim();
    if (equals === -1 || name === '') return undefined;
    try {
      pairs.push([name, decodeURIComponent(part.slice(equals + 1).trim())]);
    } catch {
      return undefined;
    }
  }
  return pairs;
}

/** Adds a field. @returns what is wrong about it */
export function addField(
  headers: Record<string, string>,
  writtenName: string,
  writtenValue: string,
): string | undefined {
  const name = writtenName.toLowerCase();
  const value = writtenValue.trim();
  if (!tokenForm.test(name)) return 'the text before the colon is not the name of a header field';
  if (ownFields.has(name)) return `the gateway sets \`${name}\` itself; remove this line`;
  if (Object.hasOwn(headers, name)) return `the field \`${name}\` stands twice`;
  if (!valuePattern.test(value)) return `the value of \`${name}\` must be 1 or more characters of ASCII`;
  if (name.length + value.length > lineCharsMax) return `this line is longer than ${lineCharsMax} characters`;
  if (Object.keys(headers).length >= fieldsMax) return `there may be at most ${fieldsMax} header fields`;
  headers[name] = value;
  return undefined;
}
