//! `rubelet net check`: the usual questions about the network of a pod, and the first thing that is
//! wrong.

use rubelet_netprobe::{
    check::{CheckEvent, CheckKind, CheckOutcome, Finding},
    request::{ProbeRequest, json_line},
};

use super::{Lines, place::start_in_pod};
use crate::{agent::Agent, failure::CommandError, terminal::Terminal};

/// Check the network of a pod step by step
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Asks the usual questions about the network of a pod, from inside the pod and in the order in which \
                  one builds on the other: has it its address, is the gateway there, do its nameservers \
                  answer, do they know a name, is the Service of the API server there, the API server, a host beyond the node, \
                  and do long packets arrive. Says the first thing that is wrong and what to do. Needs root. Exit \
                  code 0 if nothing is wrong, 1 if something is, 2 for other errors.",
    after_help = "\
Examples:
  rubelet net check web
  rubelet net check web --name db.default.svc.cluster.local
  rubelet net check web --outside 192.0.2.1
  rubelet net check web -o json"
)]
pub(crate) struct CheckArgs {
    /// The pod: NAME, pod/NAME, or a unique prefix of its name
    #[arg(value_name = "POD")]
    pod: String,
    /// Namespace of the pod
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// A name that the nameservers must know [default: kubernetes.default.svc and the cluster's domain]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A host beyond the node that answers echo requests [default: the node's gateway]
    #[arg(long, value_name = "HOST")]
    outside: Option<String>,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Lines>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &CheckArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let probe = ProbeRequest::Check {
        name: args.name.clone(),
        outside: args.outside.clone(),
    };
    let mut reports = start_in_pod(agent, &args.pod, &args.namespace, &probe).await?;
    let mut first = None;
    while let Some(event) = reports.next().await? {
        match args.output {
            Some(Lines::Json) => terminal.print(json_line(&event))?,
            None => terminal.print(line(&event))?,
        }
        let CheckEvent::Checked { check, finding } = event;
        if finding.outcome == CheckOutcome::Wrong {
            first.get_or_insert((check, finding));
        }
    }
    reports.finish()?;
    let Some((check, finding)) = first else {
        return Ok(());
    };
    if args.output.is_none() {
        terminal.print(conclusion(check, &finding))?;
    }
    Err(CommandError::Exit(1))
}

fn line(event: &CheckEvent) -> String {
    let CheckEvent::Checked { check, finding } = event;
    let outcome = match finding.outcome {
        CheckOutcome::Ok => "ok",
        CheckOutcome::Wrong => "wrong",
        CheckOutcome::Skipped => "skipped",
    };
    format!("{outcome:<8} {:<11} {}\n", check.title(), finding.detail)
}

fn conclusion(check: CheckKind, finding: &Finding) -> String {
    let advice = finding.advice.as_deref().unwrap_or_default();
    let (title, detail) = (check.title(), &finding.detail);
    format!("\nThe first thing that is wrong is the {title}: {detail}.\n{advice}.\n")
}
