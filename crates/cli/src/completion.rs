//! `rubelet completion`: a script for the shell. It calls this program for the names of pods and
//! containers, which clap's scripts don't complete.

mod names;

use super::{
    failure::CommandError,
    terminal::{Terminal, visible},
};

pub(super) use names::{NamesArgs, names};

/// The supported shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints a completion script
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Prints a completion script. It completes commands, options, and the names of pods and \
                  containers of the agent that runs; without one, it completes no names.",
    after_help = "Example:\n  rubelet completion bash > \
                        /usr/share/bash-completion/completions/rubelet"
)]
pub(crate) struct CompletionArgs {
    /// The shell to print a script for
    shell: Shell,
}

const BASH: &str = r#"
_rubelet_names() {
    local names
    mapfile -t names < <("${COMP_WORDS[0]}" __names -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [ "${#names[@]}" -gt 0 ]; then
        COMPREPLY=("${names[@]}")
        return 0
    fi
    _rubelet "$@"
}
complete -F _rubelet_names -o bashdefault -o default rubelet
"#;

const ZSH: &str = r#"
_rubelet() {
    local -a names
    names=("${(@f)$("${words[1]}" __names -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    names=("${(@)names:#}")
    if (( ${#names} )); then
        compadd -- "${names[@]}"
        return
    fi
    _rubelet_static "$@"
}
if [ "$funcstack[1]" = "_rubelet" ]; then
    _rubelet "$@"
else
    compdef _rubelet rubelet
fi
"#;

const FISH: &str = r#"
function __rubelet_names
    set -l words (commandline -opc)
    set -l current (commandline -ct | string collect --allow-empty)
    $words[1] __names -- $words[2..-1] "$current" 2>/dev/null
end
complete -c rubelet -a '(__rubelet_names)'
"#;

/// Prints the script that completes the commands and options of `program`.
pub(super) fn run(
    args: &CompletionArgs,
    program: fn() -> clap::Command,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut program = program();
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    terminal.print(match args.shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Zsh => format!("{}{ZSH}", renamed(&script)),
        Shell::Fish => format!("{script}{FISH}"),
    })
}

/// The script for zsh with its function under another name, and without its call at the end.
fn renamed(script: &str) -> String {
    let end = script.find("\nif [ \"$funcstack[1]\" = \"_rubelet\" ]");
    let script = end.map_or(script, |end| &script[..=end]);
    script.replacen("\n_rubelet() {", "\n_rubelet_static() {", 1)
}

/// Prints names, one a line. Control characters are escaped.
fn print(names: &[String], terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
    let lines: String = names
        .iter()
        .map(|name| format!("{}\n", visible(name)))
        .collect();
    terminal.print(lines)
}
