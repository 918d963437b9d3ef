//! `rubelet delete`: shortens the termination of a pod that no manifest defines any more.

use http::Method;
use rubelet_server::clock;
use serde_json::json;

use super::{
    agent::{Agent, Call},
    failure::CommandError,
    target::{NamespaceArgs, PodArg, name_of, pod_path},
    terminal::Terminal,
};

/// Shortens the grace period of a terminating pod
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Shortens the grace period of a terminating pod. What keeps a pod running is its \
                  manifest: to delete a pod, remove that file or move it away.",
    after_help = "\
Examples:
  rubelet delete pod/web --now
  rubelet delete pod web --grace-period 5"
)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pod: PodArg,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Seconds from SIGTERM to SIGKILL; it can only be shortened
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u64>,
    /// Same as --grace-period=1
    #[arg(long, conflicts_with = "grace_period")]
    now: bool,
}

pub(super) async fn run(
    agent: &Agent,
    args: &DeleteArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let pod = args.pod.find(agent, args.namespace.namespace()).await?;
    let grace = args.now.then_some(1).or(args.grace_period);
    let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "v1",
                              "preconditions": { "uid": pod["metadata"]["uid"] } });
    if let Some(grace) = grace {
        options["gracePeriodSeconds"] = grace.into();
    }
    let call = Call {
        method: Method::DELETE,
        url: &pod_path(&pod, ""),
        body: Some(("application/json", options)),
    };
    let ending = agent.call(call).await?;
    let metadata = &ending["metadata"];
    let seconds = metadata["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
    let at = metadata["deletionTimestamp"].as_str().unwrap_or_default();
    let left = at
        .parse::<jiff::Timestamp>()
        .map_or(0, |at| at.duration_since(clock::now()).as_secs().max(0));
    terminal.print(format!(
        "pod/{} is terminating with a grace period of {seconds} s; SIGKILL in {left} s\n",
        name_of(&pod)
    ))
}
