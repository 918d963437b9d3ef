//! The command line, parsed by clap.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser};

use super::{
    client::{ClientCall, ClientCommand, ClientOptions},
    hint::hint,
};

/// Why a command line is invalid, or the requested help or version.
pub type UsageError = clap::Error;

/// A parsed command line.
#[derive(Debug, Clone)]
pub enum CommandLine {
    /// `rubelet run`
    Run {
        /// The kubelet's flags.
        flags: Vec<String>,
    },
    /// `rubelet runtime serve`
    ServeRuntime {
        /// `--listen`.
        listen: Option<String>,
        /// Flags of `rubelet run` that are about the runtime.
        flags: Vec<String>,
    },
    /// Any other command
    Client(ClientCall),
}

impl CommandLine {
    /// Reads the words of a command line, the program's name first.
    ///
    /// # Errors
    /// The command line is invalid, or requests help or the version: [`UsageError::exit`] prints
    /// the text to stdout or stderr.
    pub fn parse<W>(words: impl IntoIterator<Item = W>) -> Result<Self, UsageError>
    where
        W: Into<OsString> + Clone,
    {
        let program = Program::try_parse_from(words).map_err(hint)?;
        Ok(match program.command {
            Command::Run { flags } => Self::Run { flags },
            Command::Runtime {
                command: RuntimeCommand::Serve { listen, flags },
            } => Self::ServeRuntime { listen, flags },
            Command::Client(command) => Self::Client(ClientCall {
                options: program.client,
                command,
                program: Program::command,
            }),
        })
    }
}

/// All commands and options, for completion scripts.
#[cfg(test)]
pub(super) fn program() -> clap::Command {
    Program::command()
}

/// A Kubernetes node agent
#[derive(Debug, Parser)]
#[command(
    name = "rubelet",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Program {
    #[command(flatten)]
    client: ClientOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run the agent; takes the kubelet's flags (`rubelet run --help` lists them)
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Run {
        /// The kubelet's flags
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        flags: Vec<String>,
    },
    /// Run the embedded container runtime without the agent
    Runtime {
        #[command(subcommand)]
        command: RuntimeCommand,
    },
    #[command(flatten)]
    Client(ClientCommand),
}

#[derive(Debug, clap::Subcommand)]
enum RuntimeCommand {
    /// Serve the CRI on a socket, for crictl, a kubelet or another agent
    #[command(
        after_help = "Example:\n  rubelet runtime serve --listen unix:///run/rubelet/cri.sock"
    )]
    Serve {
        /// The socket [default: unix:///run/rubelet/runtime/cri.sock]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<String>,
        /// Flags of `rubelet run` that are about the runtime: --config, --cgroup-driver, --v and all
        /// that begin with --runtime-
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        flags: Vec<String>,
    },
}
