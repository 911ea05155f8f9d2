import { aboutNoKey, exampleVersions, type ListedKinds, webhook } from './kind.ts';

/** The gateway has loaded the configuration, or has rejected an edit. */
export type ReloadEvent =
  | {
      readonly kind: 'reload';
      readonly before: string;
      readonly after: string;
      /** "free 60 → 50 a minute". */
      readonly edits: readonly string[];
    }
  | {
      readonly kind: 'reload_failed';
      readonly before: string;
      readonly after: string | undefined;
      readonly error: string;
    };

const ofConfiguration = {
  ...aboutNoKey,
  subject: () => 'config',
  identity: ({ before, after = '' }: ReloadEvent) =>
    ({ kind: 'near', what: [before, after], within: 'changesMergedWithinMs' }) as const,
};

const entry = () => ({});

export const reloadKinds: ListedKinds<ReloadEvent> = {
  reload: {
    ...ofConfiguration,
    text({ before, after, edits }) {
      if (before === after) return `Configuration ${after} was loaded again.`;
      const what = edits.length === 0 ? 'no setting changed' : edits.join('; ');
      return `Configuration ${after} is in force: ${what}.`;
    },
    list: { group: 'change', many: 'reloads', entry },
    webhook: webhook({
      typeOf: () => 'config.reloaded',
      when: {
        'config.reloaded':
          'The gateway has loaded an edit of the configuration, or an invalid edit was changed back. `edits` also describes changes of keys in a file, but no tokens of the admin API, and no setting that waits for a restart.',
      },
      data: (z) => ({ before: z.string(), after: z.string(), edits: z.array(z.string()) }),
      list: 'edits',
      members: ({ before, after, edits }) => ({ before, after, edits: [...edits] }),
      examples: () => [{ kind: 'reload', ...exampleVersions, edits: ['free 60 → 50 a minute'] }],
    }),
  },
  reload_failed: {
    ...ofConfiguration,
    text({ before, after, error }) {
      const which = after === undefined ? 'The configuration' : `Configuration ${after}`;
      const [firstLine = ''] = error.split('\n', 1);
      return `${which} was not loaded, so configuration ${before} stays in force: ${firstLine}`;
    },
    list: { group: 'change', many: 'failed reloads', entry },
    webhook: webhook({
      typeOf: () => 'config.rejected',
      when: {
        'config.rejected':
          'An edit of the configuration is invalid, and the version `before` stays in force. If the gateway can use other files of the edit, it sends `config.reloaded` for them first.',
      },
      data: (z) => ({ before: z.string(), after: z.string().optional(), problems: z.array(z.string()) }),
      list: 'problems',
      members({ before, after, error }) {
        // Lines that begin with a blank quote the file.
        const problems = error.split('\n').filter((line) => line !== '' && !line.startsWith(' '));
        return { before, after, problems };
      },
      examples: () => [
        {
          kind: 'reload_failed',
          ...exampleVersions,
          error:
            'tollgate.yaml:12:5: `plans.free.perMinute` must be a whole number from 1 to 999999999999999',
        },
      ],
    }),
  },
};
