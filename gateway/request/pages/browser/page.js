// Shows the API document with Swagger UI. A key that a reader enters stays in the page's memory and is sent only to the page's
// origin.

/** Returns a sentence with the dates of a deprecation. The page shows the sentence above the operation's own description. */
function deprecationNotice(operation) {
  const since = operation['x-deprecated-since'];
  const sunset = operation['x-deprecated-sunset'];
  const successor = operation['x-deprecated-successor'];
  const parts = [since ? `Deprecated since ${since}` : 'Deprecated'];
  if (sunset) parts.push(`removed on ${sunset}`);
  for (const { from, every, for: length } of operation['x-brownouts'] ?? []) {
    parts.push(`rehearsed for ${length}${every ? ` every ${every}` : ''} from ${from}`);
  }
  if (successor) parts.push(`replaced by \`${successor}\``);
  return `**${parts.join(', ')}.**`;
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'patch'];

/** Changes the document for this page: calls go to the page's origin, and deprecated operations get a notice. */
function prepare(document) {
  const [server] = document.servers;
  document.servers = [{ url: location.origin + new URL(server.url).pathname.replace(/\/$/, '') }];
  for (const item of Object.values(document.paths)) {
    for (const method of methods) {
      const operation = item[method];
      if (operation?.deprecated !== true) continue;
      operation.description = `${deprecationNotice(operation)}\n\n${operation.description ?? ''}`;
    }
  }
  return document;
}

/**
 * A Swagger UI plugin that adds a badge after the path of an operation that is deprecated, experimental or in beta, or that does not cost 1 unit. Response
 * headers are hidden until a click, because every response has about twelve.
 */
function costBadge(operation) {
  const cost = operation?.get('x-cost') ?? 1;
  return cost === 1 ? undefined : `${cost} units`;
}

function additions({ React, specSelectors }) {
  const { createElement, Fragment } = React;

  function badgesOf({ path, method }) {
    const operation = specSelectors.specJson().getIn(['paths', path, method]);
    const deprecated = operation?.get('deprecated') ? 'deprecated' : undefined;
    return [operation?.get('x-stability'), deprecated, costBadge(operation)]
      .filter(Boolean)
      .map((state) => createElement('span', { key: state, className: `badge ${state}` }, state));
  }

  return {
    wrapComponents: {
      OperationSummaryPath: (Path) => (props) =>
        createElement(Fragment, null, createElement(Path, props), badgesOf(props.operationProps.toObject())),
      headers: (Headers) => (props) =>
        props.headers?.size > 0 &&
        createElement(
          'details',
          { className: 'response-headers' },
          createElement('summary', null, `Headers (${props.headers.size})`),
          createElement(Headers, props),
        ),
    },
  };
}

async function show(element) {
  const response = await fetch(element.dataset.document);
  if (!response.ok) throw new Error(`${response.status}: ${(await response.json()).message}`);
  const spec = prepare(await response.json());
  document.title = spec.info?.title ?? document.title;
  const { SwaggerUIBundle } = window;
  SwaggerUIBundle({
    spec,
    domNode: element,
    layout: 'BaseLayout',
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [additions],
    deepLinking: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    // The page does not store keys. The page does not send the document to Swagger's validator, which runs on another server.
    persistAuthorization: false,
    validatorUrl: null,
    onComplete: () => {
      element.dataset.state = 'shown';
    },
  });
}

const element = document.getElementById('reference');
show(element).catch((error) => {
  element.dataset.state = 'failed';
  element.textContent = `The API document could not be read: ${error.message}`;
});
