/** @import { BodyOf } from '../wires/api-types.ts' */

/** @typedef {BodyOf<'/settings'>} Settings */

/**
 * An effective setting.
 *
 * @typedef {object} SettingRow
 * @property {string} group the first part of the name
 * @property {string} name as in the configuration, such as `listen.port` or `notify[0].url`
 * @property {string | undefined} value undefined if the configuration does not state the setting and it has no default
 * @property {boolean} isDefault whether the value is the default
 * @property {string | undefined} description
 */

/**
 * A JSON schema, as far as this file reads it.
 *
 * @typedef {{ description?: string, 'x-setting'?: string, default?: unknown, $ref?: string, properties?: Record<string, Schema>, items?: Schema, additionalProperties?: Schema | boolean, anyOf?: Schema[] }} Schema
 */

/** @typedef {{ openapi?: string, components?: { schemas?: Record<string, Schema> } }} Document */

/** The members with pages of their own, and those that `keys` has in the configuration. */
const shownApart = ['version', 'plans', 'operations', 'keys', 'keyCount', 'keysFile', 'directory'];

/**
 * Returns the settings of a `/settings` response with their descriptions, in the order of the response. Keys, plans and operations
 * have pages and commands of their own.
 *
 * @param {Settings} settings
 * @param {Document} [document] the OpenAPI document of the admin API, which has the descriptions
 * @returns {readonly SettingRow[]}
 */
export function settingRows(settings, document = {}) {
  const schema = document.components?.schemas?.Settings;
  const { keysFile, directory, ...others } = settings;
  const members = { ...absentIn(settings, schema), ...others };
  return [
    ...rowsOf('keys.file', keysFile, memberOf(schema, 'keysFile'), document),
    ...rowsOf('keys.directory', directory, memberOf(schema, 'directory'), document),
    ...Object.entries(members)
      .filter(([name]) => !shownApart.includes(name))
      .flatMap(([name, value]) =>
        name === 'upstreams'
          ? upstreamRows(settings.upstreams, memberOf(schema, name), document)
          : rowsOf(name, value, memberOf(schema, name), document),
      ),
  ];
}

/** @param {Settings} settings @param {Schema | undefined} schema @returns {Record<string, undefined>} */
function absentIn(settings, schema) {
  const absent = Object.keys(schema?.properties ?? {}).filter((name) => !(name in settings));
  return Object.fromEntries(absent.map((name) => [name, undefined]));
}

/**
 * The configuration states a single upstream as `upstream`, and several as `upstreams.NAME`.
 *
 * @param {Settings['upstreams']} upstreams @param {Schema | undefined} schema @param {Document} document
 */
function upstreamRows(upstreams, schema, document) {
  return upstreams.flatMap(({ name, ...members }) => {
    const isSingle = upstreams.length === 1 && name === 'default';
    return rowsOf(isSingle ? 'upstream' : `upstreams.${name}`, members, memberOf(schema, '0'), document);
  });
}

/**
 * @param {string} name @param {unknown} value @param {Schema | undefined} schema @param {Document} document
 * @returns {readonly SettingRow[]}
 */
function rowsOf(name, value, schema, document) {
  const resolved = resolve(schema, document);
  const isLeaf = typeof value !== 'object' || value === null;
  const isPlainList = Array.isArray(value) && value.every((entry) => typeof entry !== 'object');
  if (!isLeaf && !isPlainList && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([step, member]) =>
      rowsOf(
        stepTo(name, step, Array.isArray(value)),
        textOf(step, member),
        memberOf(resolved, step),
        document,
      ),
    );
  }
  return [
    {
      group: /^\w+/.exec(name)?.[0] ?? name,
      name,
      value: isLeaf
        ? value === undefined
          ? undefined
          : String(value)
        : isPlainList
          ? value.join(', ') || 'none'
          : undefined,
      isDefault: value !== undefined && JSON.stringify(value) === JSON.stringify(schema?.default),
      description: descriptionIn(schema) ?? descriptionIn(resolved),
    },
  ];
}

/** What a setting means, and how the response masks it. @param {Schema | undefined} schema */
function descriptionIn(schema) {
  const parts = [schema?.['x-setting'], schema?.description].filter((text) => text !== undefined);
  return parts.length === 0 ? undefined : parts.join(' ');
}

/** The response shortens the member `sha256` of the configuration to `digestStart`. @param {string} name @param {string} step @param {boolean} isList */
function stepTo(name, step, isList) {
  if (isList) return `${name}[${step}]`;
  return `${name}.${step === 'digestStart' ? 'sha256' : step}`;
}

/** @param {string} step @param {unknown} value */
function textOf(step, value) {
  return step === 'digestStart' ? `${value}…` : value;
}

/**
 * The schema of a member or of an entry, also if the schema has alternatives.
 *
 * @param {Schema | undefined} schema @param {string} step @returns {Schema | undefined}
 */
function memberOf(schema, step) {
  if (schema === undefined) return undefined;
  const { properties = {}, items, additionalProperties, anyOf = [] } = schema;
  return (
    properties[step] ??
    items ??
    (typeof additionalProperties === 'object' ? additionalProperties : undefined) ??
    anyOf.map((/** @type {Schema} */ one) => memberOf(one, step)).find(Boolean)
  );
}

/** @param {Schema | undefined} schema @param {Document} document @returns {Schema | undefined} */
function resolve(schema, document) {
  const [, name] = /^#\/components\/schemas\/(\w+)$/.exec(schema?.$ref ?? '') ?? [];
  return name === undefined ? schema : document.components?.schemas?.[name];
}
