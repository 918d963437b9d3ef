//! `rubelet net path`: where packets from a pod stop on this node.

use clap::ArgGroup;
use rubelet_netprobe::{
    check::CheckOutcome,
    path::PathEvent,
    request::{ProbeRequest, json_line},
};

use super::{Lines, place::start_in_pod, resolve::FamilyArgs};
use crate::{
    agent::Agent,
    failure::CommandError,
    print::table,
    target::{find_pod, name_of, namespace_of, parse_pod},
    terminal::Terminal,
};

/// Show where packets from a pod stop on this node
#[derive(Debug, Clone, clap::Args)]
#[command(
    group = ArgGroup::new("end").required(true).args(["to", "to_host"]),
    long_about = "Sends a few ICMP echo requests from inside a pod, and looks for them and for the replies at each interface of \
                  this node that they should pass: those of the pods, the bridge or what the network has in its \
                  place, and the node's own. Says between which two they stop, and names the rule of nftables that drops them, \
                  with its counter; rules that iptables-nft made are among them. Needs root. Exit code 0 if the target answers, 1 \
                  if not, 2 for other errors.",
    after_help = "\
Examples:
  rubelet net path --from web --to db
  rubelet net path --from web --to-host 192.0.2.1
  rubelet net path --from web --to db -o json"
)]
pub(crate) struct PathArgs {
    /// The pod that sends: NAME, pod/NAME, or a unique prefix of its name
    #[arg(long, value_name = "POD")]
    from: String,
    /// The pod of this node that it sends to
    #[arg(long, value_name = "POD")]
    to: Option<String>,
    /// The host that it sends to: an address or a name
    #[arg(long, value_name = "HOST")]
    to_host: Option<String>,
    /// Namespace of the pods
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    #[command(flatten)]
    family: FamilyArgs,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Lines>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &PathArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let target = match &args.to {
        Some(pod) => of_pod(agent, pod, &args.namespace).await?,
        None => args.to_host.clone().unwrap_or_default(),
    };
    let probe = ProbeRequest::Path {
        target,
        family: args.family.family(),
    };
    let mut reports = start_in_pod(agent, &args.from, &args.namespace, &probe).await?;
    let mut rows = vec![
        ["INTERFACE", "REQUESTS", "REPLIES"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut result = None;
    while let Some(event) = reports.next().await? {
        if args.output == Some(Lines::Json) {
            terminal.print(json_line(&event))?;
        }
        match event {
            PathEvent::Point {
                name,
                requests,
                replies,
            } => rows.push(vec![name, requests.to_string(), replies.to_string()]),
            PathEvent::Result { finding } => result = Some(finding),
        }
    }
    reports.finish()?;
    // A probe that is stopped has no result.
    let finding = result.ok_or(CommandError::Exit(1))?;
    if args.output.is_none() {
        let advice = finding.advice.as_ref().map(|advice| format!("{advice}.\n"));
        let (shown, advice) = (table(&rows), advice.unwrap_or_default());
        terminal.print(format!("{shown}\n{}.\n{advice}", finding.detail))?;
    }
    match finding.outcome {
        CheckOutcome::Wrong => Err(CommandError::Exit(1)),
        CheckOutcome::Ok | CheckOutcome::Skipped => Ok(()),
    }
}

/// The name of a pod in a request.
async fn of_pod(agent: &Agent, pod: &str, namespace: &str) -> Result<String, CommandError> {
    let found = find_pod(agent, parse_pod(pod)?, Some(namespace)).await?;
    let (namespace, name) = (namespace_of(&found), name_of(&found));
    Ok(format!("pod/{namespace}/{name}"))
}
