import { Argument, type Command, type Option } from 'commander';

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };

export type Shell = keyof typeof scripts;

/** Prints a script that completes commands, options, file names and fixed words. The script does not query a gateway. */
export function printCompletion(shell: Shell, program: Command): void {
  process.stdout.write(scripts[shell](completedOf(program)));
}

/** The values that an option or argument accepts: a choice of words, or file names. */
type Values = readonly string[] | 'files';

interface Completed {
  /** The names of the command and its parents, such as `keys list`. The text is empty for the program itself. */
  readonly path: string;
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
  readonly argument: Values;
}

function completedOf(command: Command, path = ''): Completed[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((one) => one.name() !== 'help');
  const [argument] = command.registeredArguments;
  return [
    { path, commands, options: help.visibleOptions(command), argument: argument ? valuesOf(argument) : [] },
    ...commands.flatMap((one) => completedOf(one, `${path} ${one.name()}`.trim())),
  ];
}

/** In all commands, an option or argument that takes a file has the placeholder `file`, as in `--config <file>` and `[file]`. */
function valuesOf(of: Option | Argument): Values {
  const name = of instanceof Argument ? of.name() : (/[<[](\w+)/.exec(of.flags)?.[1] ?? '');
  return name === 'file' ? 'files' : (of.argChoices ?? []);
}

const takesValue = ({ required, optional }: Option) => required || optional;

/** Two functions that work in bash and in zsh. The functions set `offer` to `files`, or to the words that may come next. */
function sharedFunctions(all: readonly Completed[]): string {
  const textOf = (values: Values) => (values === 'files' ? 'files' : values.join(' '));
  const behindOption = Map.groupBy(
    all.flatMap(({ path, options }) =>
      options.filter(takesValue).map((option) => ({
        words: `'${path} ${option.long}'`,
        offer: textOf(valuesOf(option)),
      })),
    ),
    ({ offer }) => offer,
  );
  const paths = all.flatMap(({ path }) => (path === '' ? [] : [`'${path}'`]));
  return `__tollgate_at() {
  local word
  at=
  for word in "$@"; do
    case "\${at:+$at }$word" in
      ${paths.join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
}

__tollgate_offer() {
  case "$1 $2" in
${[...behindOption].map(([offer, of]) => `    ${of.map(({ words }) => words).join('|')}) offer='${offer}'; return ;;`).join('\n')}
  esac
  case "$1" in
${all
  .map(({ path, commands, options, argument }) => {
    const others = commands.length > 0 ? commands.map((one) => one.name()).join(' ') : textOf(argument);
    const flags = options.map(({ long }) => long).join(' ');
    const choice = others === '' ? '' : `; [[ "$3" == -* ]] || offer='${others}'`;
    return `    '${path}') offer='${flags}'${choice} ;;`;
  })
  .join('\n')}
  esac
}
`;
}

function bashScript(all: readonly Completed[]): string {
  return `# Completion of tollgate for bash.
${sharedFunctions(all)}
_tollgate() {
  local at offer cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]}
  # Readline splits \`--may=read\` into three words.
  if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  __tollgate_at "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  __tollgate_offer "$at" "$prev" "$cur"
  COMPREPLY=()
  if [[ $offer == files ]]; then compopt -o default; else COMPREPLY=($(compgen -W "$offer" -- "$cur")); fi
}
complete -F _tollgate tollgate
`;
}

function zshScript(all: readonly Completed[]): string {
  return `# Completion of tollgate for zsh; compinit must have run before.
${sharedFunctions(all)}
_tollgate() {
  local at offer
  __tollgate_at "\${(@)words[2,CURRENT-1]}"
  __tollgate_offer "$at" "\${words[CURRENT-1]}" "\${words[CURRENT]}"
  if [[ $offer == files ]]; then _files; else compadd -- \${=offer}; fi
}
compdef _tollgate tollgate
`;
}

function fishScript(all: readonly Completed[]): string {
  const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;
  const paths = all.flatMap(({ path }) => (path === '' ? [] : [quoted(path)]));
  const lines = all.flatMap(({ path, commands, options, argument }) => {
    const complete = `complete -c tollgate -n ${quoted(`__tollgate_is ${path}`.trim())}`;
    return [
      ...commands.map((one) => `${complete} -a ${one.name()} -d ${quoted(one.description())}`),
      ...options.map((option) => {
        const value = takesValue(option) ? ` ${valueFlags(valuesOf(option))}` : '';
        return `${complete} -l ${option.long?.slice(2)}${value} -d ${quoted(option.description)}`;
      }),
      ...(argument.length === 0
        ? []
        : [`${complete} ${argument === 'files' ? '-F' : `-a ${quoted(argument.join(' '))}`}`]),
    ];
  });
  return `# Completion of tollgate for fish.
function __tollgate_is
  set -l at
  for word in (commandline -opc)[2..]
    switch (string join ' ' -- $at $word)
      case ${paths.join(' ')}
        set at $at $word
    end
  end
  test "$at" = "$argv"
end
complete -c tollgate -f
${lines.join('\n')}
`;

  function valueFlags(values: Values): string {
    return values === 'files' ? '-r -F' : `-x -a ${quoted(values.join(' '))}`;
  }
}
