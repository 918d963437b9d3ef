//! The client commands: everything of the binary that talks to a running agent, or to no agent.
//!
//! Data goes to stdout, errors and hints to stderr. Exit codes: 0 ok, 1 error, 2 wrong usage.

mod agent;
mod completion;
pub(crate) mod config;
mod debug;
mod delete;
mod describe;
mod doctor;
mod events;
mod failure;
mod get;
mod hint;
mod image;
mod logs;
mod print;
mod restart;
mod status;
mod target;
mod terminal;
mod url;
mod version;
mod watch;
mod why;

#[cfg(test)]
mod tests;

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode};

use self::{agent::Agent, failure::Failure, terminal::Terminal};
pub(crate) use self::{config::ConfigFiles, hint::hint};

/// Where the agent's socket is when nobody says otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/run/rubelet/rubelet.sock";

/// The variable that stands in for `--socket`.
pub(crate) const SOCKET_VARIABLE: &str = "RUBELET_SOCKET";

/// Options of every client command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ClientOptions {
    /// Socket of the agent [env: RUBELET_SOCKET] [default: /run/rubelet/rubelet.sock]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

impl ClientOptions {
    fn socket(self) -> PathBuf {
        let variable = || std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty());
        self.socket
            .or_else(|| variable().map(PathBuf::from))
            .unwrap_or_else(|| DEFAULT_SOCKET.into())
    }
}

/// The client commands.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum ClientCommand {
    /// Show pods, events or manifests of this machine's agent
    Get(get::GetArgs),
    /// Show one pod in detail, with its events
    Describe(describe::DescribeArgs),
    /// Tell why a pod is as it is, in plain words
    Why(why::WhyArgs),
    /// Print the log of a container
    Logs(logs::LogsArgs),
    /// Show what happened, oldest first
    Events(events::EventsArgs),
    /// Show whether the node does its work, and what it waits for
    Status(status::StatusArgs),
    /// Start containers of a pod anew, in their place
    Restart(restart::RestartArgs),
    /// Add an ephemeral container to a pod that runs
    Debug(debug::DebugArgs),
    /// End a pod sooner that is ending already
    Delete(delete::DeleteArgs),
    /// Look after the images that containers are made from
    Image(image::ImageArgs),
    /// Tell what is wrong with this machine for running pods, and what to do about it
    Doctor(doctor::DoctorArgs),
    /// Check or show the configuration that `rubelet run` would use
    Config(config::ConfigArgs),
    /// Show the versions of this program and of the running agent
    Version(version::VersionArgs),
    /// Print a completion script for a shell
    Completion(completion::CompletionArgs),
}

/// Runs a client command on the process's own stdout and stderr. `program` is the complete command
/// line, for the completion scripts.
#[must_use]
pub(crate) fn execute(
    options: ClientOptions,
    command: ClientCommand,
    program: clap::Command,
) -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let color = std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let mut terminal = Terminal::new(&mut out, &mut err, color);
    ExitCode::from(run(options, command, program, &mut terminal))
}

/// Runs a client command; returns the exit code.
fn run(
    options: ClientOptions,
    command: ClientCommand,
    program: clap::Command,
    terminal: &mut Terminal<'_>,
) -> u8 {
    let result = match command {
        ClientCommand::Completion(args) => completion::run(&args, program, terminal),
        ClientCommand::Config(args) => config::run(args, terminal),
        ClientCommand::Doctor(args) => doctor::run(args, terminal),
        online => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.map_err(Failure::from).and_then(|runtime| {
                runtime.block_on(talk(Agent::new(options.socket()), online, terminal))
            })
        }
    };
    match result {
        Ok(()) | Err(Failure::ReaderGone) => 0,
        Err(Failure::Usage(message)) => {
            terminal.error(&message);
            2
        }
        Err(Failure::Error(error)) => {
            terminal.error(&format!("{error:#}"));
            1
        }
    }
}

async fn talk(
    agent: Agent,
    command: ClientCommand,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    match command {
        ClientCommand::Get(args) => get::run(&agent, args, terminal).await,
        ClientCommand::Describe(args) => describe::run(&agent, &args, terminal).await,
        ClientCommand::Why(args) => why::run(&agent, &args, terminal).await,
        ClientCommand::Logs(args) => logs::run(&agent, &args, terminal).await,
        ClientCommand::Status(args) => status::run(&agent, &args, terminal).await,
        ClientCommand::Restart(args) => restart::run(&agent, &args, terminal).await,
        ClientCommand::Debug(args) => debug::run(&agent, &args, terminal).await,
        ClientCommand::Delete(args) => delete::run(&agent, &args, terminal).await,
        ClientCommand::Events(args) => events::run(&agent, args, terminal).await,
        ClientCommand::Version(args) => version::run(&agent, &args, terminal).await,
        ClientCommand::Image(args) => image::run(&agent, args, terminal).await,
        ClientCommand::Config(_) | ClientCommand::Doctor(_) | ClientCommand::Completion(_) => {
            Ok(())
        }
    }
}
