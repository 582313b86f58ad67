import type { Command, Option } from 'commander';
import { failure } from './endings.ts';

/**
 * What may stand in place of the last of these words: commands, options, and values of options. Nothing where a file or a
 * name stands: shells then offer files.
 */
export function completions(program: Command, words: readonly string[]): string[] {
  const current = words.at(-1) ?? '';
  let command = program;
  let awaited: Option | undefined;
  for (const word of words.slice(0, -1)) {
    if (awaited !== undefined) {
      awaited = undefined;
      continue;
    }
    if (word.startsWith('-')) {
      const option = optionsOf(command).find(({ long, short }) => word === long || word === short);
      if (option?.required) awaited = option;
      continue;
    }
    command = command.commands.find((each) => each.name() === word) ?? command;
  }
  const candidates = () => {
    if (awaited !== undefined) return awaited.argChoices ?? [];
    if (current.startsWith('-')) return optionsOf(command).map(({ long, short }) => long ?? short ?? '');
    return command
      .createHelp()
      .visibleCommands(command)
      .map((each) => each.name());
  };
  return candidates().filter((each) => each !== '' && each.startsWith(current));
}

function optionsOf(command: Command): readonly Option[] {
  return command.createHelp().visibleOptions(command);
}

/** What a shell reads to complete the command lines of `program`. */
export function completionScript(shell: string, program: string): string {
  const name = program.replaceAll('-', '_');
  switch (shell) {
    case 'bash':
      return `_${name}_complete() {
  local IFS=$'\\n'
  COMPREPLY=($(${program} __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _${name}_complete ${program}`;
    case 'zsh':
      return `#compdef ${program}
_${name}() {
  local -a found
  found=("\${(@f)$(${program} __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
# Read as a file of the function path, this is the function itself.
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${program}; fi`;
    case 'fish':
      return `function __${name}_complete
  set -l found (${program} __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c ${program} -f -a '(__${name}_complete)'`;
    default:
      throw failure('USAGE', `There is no completion for ${JSON.stringify(shell)}: say bash, zsh or fish.`);
  }
}
