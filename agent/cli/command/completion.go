package command

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
)

// The scripts contain no names: each Tab runs the program, which knows the table, and the agent's
// pods.
var completionScripts = map[string]string{
	"bash": `# bash completion for monopod: source <(monopod completion bash)
_monopod() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} line
	[[ $cur == = ]] && before=$cur cur=
	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		case $line in
		:files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		:dirs) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		?*)
			[[ $before == = ]] && line=${line#*=}
			[[ $line == *= ]] && compopt -o nospace 2>/dev/null
			COMPREPLY+=("$line")
			;;
		esac
	done < <("$1" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _monopod monopod
`,
	"zsh": `#compdef monopod
# zsh completion for monopod: source <(monopod completion zsh)
_monopod() {
	local line
	local -a found
	for line in "${(@f)$(${words[1]} __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		case $line in
		:files) _files ;;
		:dirs) _files -/ ;;
		?*) found+=("${${line//:/\\:}/$'\t'/:}") ;;
		esac
	done
	(( $#found )) && _describe -V monopod found
}
if [ "$funcstack[1]" = "_monopod" ]; then
	_monopod "$@"
else
	compdef _monopod monopod
fi
`,
	"fish": `# fish completion for monopod: monopod completion fish | source
function __monopod_complete
	set -l words (commandline -opc)
	set -a words (commandline -ct)
	for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
		switch $line
			case :files
				__fish_complete_path (commandline -ct)
			case :dirs
				__fish_complete_directories (commandline -ct)
			case '*'
				echo $line
		end
	end
end
complete -c monopod -f -a '(__monopod_complete)'
`,
}

// Completion is the command that prints a shell's script.
func Completion() *cli.Command {
	return &cli.Command{
		Name: "completion", ArgsUsage: "bash|zsh|fish",
		Usage: "print a script that makes a shell complete commands, flags, pods and containers",
		Description: `
For bash put "source <(monopod completion bash)" into ~/.bashrc, for zsh the
same with zsh into ~/.zshrc; for fish write the script to
~/.config/fish/completions/monopod.fish. Pods and containers are completed for
who may open the agent's socket.`,
		Action: func(c *cli.Context) error {
			script := completionScripts[c.Args().First()]
			if c.NArg() != 1 || script == "" {
				return UsageError("completion for which shell? bash, zsh or fish")
			}
			if _, err := io.WriteString(c.App.Writer, script); err != nil {
				return fmt.Errorf("print the script: %w", err)
			}
			return nil
		},
	}
}
