//! `rubelet why`: one pod in plain words, with the evidence below.

mod evidence;
mod headline;
#[cfg(test)]
mod tests;
mod words;

use anyhow::Context as _;

use super::{
    agent::Agent,
    failure::CommandError,
    print::Form,
    target::{NamespaceArgs, PodArg, pod_url},
    terminal::{Terminal, visible},
};
use rubelet_server::explanation::PodExplanation;

/// Explains the state of a pod
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  rubelet why web
  rubelet why pod/web -n kube-system
  rubelet why pod/web -o json")]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pod: PodArg,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// The whole explanation in this form
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &WhyArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let pod = args.pod.find(agent, args.namespace.namespace()).await?;
    let answer = agent.get(&pod_url(&pod, "why")).await?;
    if let Some(output) = args.output {
        return terminal.print(output.of(&answer));
    }
    let explanation: PodExplanation =
        serde_json::from_value(answer).context("the agent's explanation makes no sense")?;
    terminal.print(render(&explanation))
}

/// The headline and the evidence.
fn render(explanation: &PodExplanation) -> String {
    let text = format!(
        "{}\n{}",
        headline::of(explanation),
        evidence::of(explanation)
    );
    visible(&text)
}
