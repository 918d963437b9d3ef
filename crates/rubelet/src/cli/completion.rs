//! `rubelet completion`: a script for the shell.

use super::{failure::Failure, terminal::Terminal};

/// The shells that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints a completion script
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Example:\n  rubelet completion bash > \
                        /usr/share/bash-completion/completions/rubelet")]
pub(crate) struct CompletionArgs {
    /// The shell to print a script for
    shell: Shell,
}

pub(super) fn run(
    args: &CompletionArgs,
    mut program: clap::Command,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    terminal.print(script)
}
