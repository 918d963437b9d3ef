//! Runs a client command: with an agent on the socket, or without one.

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode};

use super::{
    agent::Agent, attach, binary::Binary, completion, config, cp, debug, delete, describe, doctor,
    events, exec, failure::CommandError, get, image, logs, net, port_forward, restart, shell,
    status, streams::Streams, terminal::Terminal, top, version, why,
};

/// The default socket of the agent.
const DEFAULT_SOCKET: &str = "/run/rubelet/rubelet.sock";

/// The environment variable that replaces `--socket`.
const SOCKET_VARIABLE: &str = "RUBELET_SOCKET";

/// Options of every client command.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ClientOptions {
    /// Socket of the agent [env: RUBELET_SOCKET] [default: /run/rubelet/rubelet.sock]
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
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
pub(super) enum ClientCommand {
    /// Display pods, events or manifests of this node
    Get(get::GetArgs),
    /// Show details of a pod, with its events
    Describe(describe::DescribeArgs),
    /// Explain the state of a pod, with the evidence
    Why(why::WhyArgs),
    /// Print the logs of a container in a pod
    Logs(logs::LogsArgs),
    /// Run a command in a container
    Exec(exec::ExecArgs),
    /// Attach to the process of a running container
    Attach(attach::AttachArgs),
    /// Forward local ports to a pod
    PortForward(port_forward::PortForwardArgs),
    /// Copy files out of a container, or into one
    Cp(cp::CpArgs),
    /// List events, oldest first
    Events(events::EventsArgs),
    /// Show whether the node is ready, and what it waits for
    Status(status::StatusArgs),
    /// Show CPU and memory of the node and its pods
    Top(top::TopArgs),
    /// Restart the containers of a pod
    Restart(restart::RestartArgs),
    /// Add an ephemeral container to a running pod
    Debug(debug::DebugArgs),
    /// Open a shell on the node, in a pod of a tool image
    Shell(shell::ShellArgs),
    /// Shorten the grace period of a terminating pod
    Delete(delete::DeleteArgs),
    /// Manage images
    Image(image::ImageArgs),
    /// Diagnose the network: ping, trace, check, path
    Net(net::NetArgs),
    /// Check whether this machine can run pods, and suggest fixes
    Doctor(doctor::DoctorArgs),
    /// Check or show the configuration that `rubelet run` would use
    Config(config::ConfigArgs),
    /// Show the versions of this program and of the agent
    Version(version::VersionArgs),
    /// Print a completion script for a shell
    Completion(completion::CompletionArgs),
    /// Print the names that fit behind an unfinished command line
    #[command(name = "__names", hide = true)]
    Names(completion::NamesArgs),
}

/// A client command and its options.
#[derive(Debug, Clone)]
pub struct ClientCall {
    pub(super) options: ClientOptions,
    pub(super) command: ClientCommand,
    /// All commands and options, for completion.
    pub(super) program: fn() -> clap::Command,
}

impl ClientCall {
    /// Runs the command on the process's own stdout and stderr.
    #[must_use]
    pub fn execute(self, binary: Binary) -> ExitCode {
        let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
        let color = std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let mut terminal = Terminal::new(&mut out, &mut err, color);
        if let Ok(streams) = Streams::of_process() {
            terminal = terminal.with_streams(streams);
        }
        ExitCode::from(self.run(binary, &mut terminal))
    }

    /// Runs the command; returns the exit code.
    pub(super) fn run(self, binary: Binary, terminal: &mut Terminal<'_>) -> u8 {
        match self.dispatch(binary, terminal) {
            Ok(()) | Err(CommandError::ReaderGone) => 0,
            Err(CommandError::Exit(code)) => code,
            Err(CommandError::Usage(message)) => {
                terminal.error(&message);
                2
            }
            Err(CommandError::Error(error)) => {
                terminal.error(&format!("{error:#}"));
                1
            }
        }
    }

    fn dispatch(self, binary: Binary, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        match self.command {
            ClientCommand::Completion(args) => completion::run(&args, self.program, terminal),
            ClientCommand::Config(args) => config::run(args, terminal),
            ClientCommand::Doctor(args) => doctor::run(args, binary, terminal),
            command => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let agent = Agent::new(self.options.socket());
                let program = self.program;
                runtime.block_on(with_agent(&agent, command, program, binary, terminal))
            }
        }
    }
}

/// Runs a command that may query the agent.
async fn with_agent(
    agent: &Agent,
    command: ClientCommand,
    program: fn() -> clap::Command,
    binary: Binary,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    match command {
        ClientCommand::Get(args) => get::run(agent, args, terminal).await,
        ClientCommand::Describe(args) => describe::run(agent, &args, terminal).await,
        ClientCommand::Why(args) => why::run(agent, &args, terminal).await,
        ClientCommand::Logs(args) => logs::run(agent, &args, terminal).await,
        ClientCommand::Exec(args) => exec::run(agent, &args, terminal).await,
        ClientCommand::Attach(args) => attach::run(agent, &args, terminal).await,
        ClientCommand::PortForward(args) => port_forward::run(agent, &args, terminal).await,
        ClientCommand::Cp(args) => cp::run(agent, &args, terminal).await,
        ClientCommand::Status(args) => status::run(agent, &args, terminal).await,
        ClientCommand::Top(args) => top::run(agent, &args, terminal).await,
        ClientCommand::Restart(args) => restart::run(agent, &args, terminal).await,
        ClientCommand::Debug(args) => debug::run(agent, &args, terminal).await,
        ClientCommand::Shell(args) => shell::run(agent, &args, terminal).await,
        ClientCommand::Names(args) => completion::names(agent, &args, &program(), terminal).await,
        ClientCommand::Delete(args) => delete::run(agent, &args, terminal).await,
        ClientCommand::Events(args) => events::run(agent, args, terminal).await,
        ClientCommand::Version(args) => version::run(agent, &args, binary, terminal).await,
        ClientCommand::Image(args) => image::run(agent, args, binary, terminal).await,
        ClientCommand::Net(args) => net::run(agent, args, terminal).await,
        ClientCommand::Config(_) | ClientCommand::Doctor(_) | ClientCommand::Completion(_) => {
            Ok(())
        }
    }
}
