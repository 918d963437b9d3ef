//! `rubelet net`: looks at the network from this node, or from inside a pod.

mod check;
mod engine;
mod names;
mod path;
mod ping;
mod ping_output;
mod place;
mod resolve;
mod seconds;
mod trace;

use super::{agent::Agent, failure::CommandError, terminal::Terminal};

/// Diagnose the network from this node, or from inside a pod
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NetArgs {
    #[command(subcommand)]
    command: NetCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum NetCommand {
    /// Send ICMP echo requests to a host, or to several
    Ping(Box<ping::PingArgs>),
    /// Show the routers on the path to a host
    #[command(visible_alias = "traceroute")]
    Trace(Box<trace::TraceArgs>),
    /// Check the network of a pod step by step
    Check(check::CheckArgs),
    /// Show where packets from a pod stop on this node
    Path(path::PathArgs),
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Lines {
    /// One JSON object in each line
    Json,
}

pub(super) async fn run(
    agent: &Agent,
    args: NetArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let ended = match args.command {
        NetCommand::Ping(args) => ping::run(agent, &args, terminal).await,
        NetCommand::Trace(args) => trace::run(agent, &args, terminal).await,
        NetCommand::Check(args) => check::run(agent, &args, terminal).await,
        NetCommand::Path(args) => path::run(agent, &args, terminal).await,
    };
    // As with ping, 1 says that a host does not answer.
    match ended {
        Err(CommandError::Error(error)) => {
            terminal.error(&format!("{error:#}"));
            Err(CommandError::Exit(2))
        }
        ended => ended,
    }
}

/// The control sequence that moves to the beginning of the line and clears it.
const CLEAR_LINE: &str = "\r\x1b[K";
/// The control sequence that moves to the upper left corner and clears the screen.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[J";

/// Whether stdout is a terminal.
fn is_screen(terminal: &Terminal<'_>) -> bool {
    terminal
        .streams()
        .is_ok_and(|streams| rustix::termios::isatty(&streams.stdout))
}
