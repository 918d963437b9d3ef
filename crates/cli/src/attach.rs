//! `rubelet attach`: the process of a running container.

use rubelet_streaming::SessionKind;

use super::{
    agent::Agent,
    containers,
    failure::CommandError,
    session::{Session, StreamArgs, check_phase},
    target::{NamespaceArgs, PodArg},
    terminal::Terminal,
};

/// Attaches to the process of a running container
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Attaches to the process of a running container: prints its output from now on, and \
                  passes stdin on with -i if the container has one.",
    after_help = "\
Examples:
  rubelet attach web
  rubelet attach web -c shell -it"
)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pod: PodArg,
    /// Container [default: the first one]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    streams: StreamArgs,
    #[command(flatten)]
    namespace: NamespaceArgs,
}

pub(super) async fn run(
    agent: &Agent,
    args: &AttachArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let pod = args.pod.find(agent, args.namespace.namespace()).await?;
    check_phase(&pod, "attach to")?;
    let (named, quiet) = (args.container.as_deref(), args.streams.quiet);
    let session = Session {
        kind: SessionKind::Attach,
        pod: &pod,
        container: &containers::choose(&pod, named, quiet, terminal)?,
        command: &[],
        args: args.streams,
    };
    session.run(agent, terminal).await
}
