//! `rubelet exec`: a command in a running container.

use rubelet_streaming::SessionKind;

use super::{
    agent::Agent,
    containers,
    failure::CommandError,
    session::{Session, StreamArgs, check_phase},
    target::{NamespaceArgs, PodArg},
    terminal::Terminal,
};

/// Runs a command in a container
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Runs a command in a container, and ends with its exit code. A terminal (-it) passes \
                  all keys on.",
    after_help = "\
Examples:
  rubelet exec web -- date
  rubelet exec -it web -- sh
  rubelet exec pod/web -c sidecar -- ls -l /data
  tar c . | rubelet exec -i web -- tar x -C /data"
)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pod: PodArg,
    /// Container [default: the first one]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    streams: StreamArgs,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &ExecArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    if args.command.is_empty() {
        let message = "give a command behind `--`, such as `rubelet exec web -- date`";
        return Err(CommandError::Usage(message.to_owned()));
    }
    let pod = args.pod.find(agent, args.namespace.namespace()).await?;
    check_phase(&pod, "exec into")?;
    let (named, quiet) = (args.container.as_deref(), args.streams.quiet);
    let session = Session {
        kind: SessionKind::Exec,
        pod: &pod,
        container: &containers::choose(&pod, named, quiet, terminal)?,
        command: &args.command,
        args: args.streams,
    };
    session.run(agent, terminal).await
}
