//! `rubelet top`: CPU and memory of the node and its pods, once or live.

mod rows;

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::time::sleep;

use self::rows::{SortBy, rows_of_node, rows_of_pods};
use super::{
    agent::{Agent, CallError},
    failure::CommandError,
    print::table,
    target::NamespaceArgs,
    terminal::Terminal,
    url::Url,
};

/// The agent reads numbers at most once a second, and usage per second needs two readings.
const NEXT_READING: Duration = Duration::from_millis(1200);

/// Moves the cursor to the corner of a terminal, and removes what is below.
const REDRAW: &str = "\x1b[H\x1b[J";

/// Shows CPU and memory of the node and its pods
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  rubelet top
  rubelet top -A --sort-by memory
  rubelet top -w --containers")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Show the numbers again and again
    #[arg(short, long)]
    watch: bool,
    /// Seconds between two tables of --watch
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// A line for each container
    #[arg(long)]
    containers: bool,
    /// Pods that use most first
    #[arg(long, value_enum)]
    sort_by: Option<SortBy>,
    /// Don't print headers
    #[arg(long)]
    no_headers: bool,
}

pub(super) async fn run(
    agent: &Agent,
    args: &TopArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let mut summary = ask(agent).await?;
    if summary["node"]["cpu"]["usageNanoCores"].is_null() {
        sleep(NEXT_READING).await;
        summary = ask(agent).await?;
    }
    terminal.print(args.tables(&summary))?;
    if !args.watch {
        return Ok(());
    }
    loop {
        sleep(Duration::from_secs(args.interval)).await;
        let tables = match ask(agent).await {
            Ok(summary) => args.tables(&summary),
            Err(refused @ CallError::Refused(..)) => return Err(refused.into()),
            // The agent restarts.
            Err(_) => continue,
        };
        let start = if terminal.color { REDRAW } else { "\n" };
        terminal.print(format!("{start}{tables}"))?;
    }
}

async fn ask(agent: &Agent) -> Result<Value, CallError> {
    let answer = agent
        .get(&Url::new("/stats/summary").with("only_cpu_and_memory", "true"))
        .await;
    answer.map_err(|error| match error {
        CallError::Refused(code @ StatusCode::NOT_FOUND, _) => CallError::Refused(
            code,
            anyhow::anyhow!("the agent is older than this command: restart it"),
        ),
        other => other,
    })
}

impl TopArgs {
    /// A table of the node, and one of the pods.
    fn tables(&self, summary: &Value) -> String {
        let node = rows_of_node(&summary["node"], !self.no_headers);
        let pods = rows_of_pods(
            summary["pods"].as_array().map_or(&[][..], Vec::as_slice),
            self.namespace.namespace(),
            self.containers,
            self.sort_by,
        );
        let mut text = table(&node);
        if pods.is_empty() {
            return text;
        }
        let headings = (!self.no_headers).then(|| {
            let namespace = self.namespace.namespace().is_none().then_some("NAMESPACE");
            let container = self.containers.then_some("CONTAINER");
            let columns = namespace.into_iter().chain(["POD"]).chain(container);
            let columns = columns.chain(["CPU(cores)", "MEMORY(bytes)"]);
            columns.map(str::to_owned).collect()
        });
        let pods: Vec<_> = headings.into_iter().chain(pods).collect();
        text.push('\n');
        text.push_str(&table(&pods));
        text
    }
}
