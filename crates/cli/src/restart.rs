//! `rubelet restart`: restarts containers in place; the pod keeps its sandbox and address.

mod progress;

use std::time::Duration;

use anyhow::anyhow;
use http::{Method, StatusCode};
use rubelet_base::duration::{format_go, parse_go};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use self::progress::{Progress, progress};
use super::{
    agent::{Agent, Call, CallError},
    failure::CommandError,
    target::{NamespaceArgs, PodArg, name_of, pod_path, pod_url},
    terminal::Terminal,
};

/// Interval between two queries of the pod.
const PERIOD: Duration = Duration::from_millis(200);

/// Restarts the containers of a pod
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Restarts the containers of a pod in place: the pod keeps its sandbox, its \
                  address and its volumes. Without -c, all containers that stay up are restarted. \
                  A restart skips the back-off and resets it.",
    after_help = "\
Examples:
  rubelet restart web
  rubelet restart pod/web -c sidecar --timeout 1m
  rubelet restart web --no-wait"
)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    pod: PodArg,
    /// Only this container
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Don't wait until the new instances run
    #[arg(long)]
    no_wait: bool,
    /// Maximum time to wait, such as 30s or 5m; 0s waits forever
    #[arg(long, value_name = "DURATION", value_parser = parse, default_value = "5m")]
    timeout: Duration,
}

fn parse(text: &str) -> Result<Duration, String> {
    parse_go(text).map_err(|error| error.to_string())
}

pub(super) async fn run(
    agent: &Agent,
    args: &RestartArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let pod = args.pod.find(agent, args.namespace.namespace()).await?;
    let call = Call {
        method: Method::POST,
        url: &pod_url(&pod, "restart").maybe("container", args.container.as_deref()),
        body: None,
    };
    let answer = agent.call(call).await?;
    let empty = Vec::new();
    let containers = answer["containers"].as_array().unwrap_or(&empty);
    let containers = containers.iter().map(|one| Restarted {
        name: text(one, "name"),
        replaced: text(one, "containerID"),
    });
    let containers: Vec<Restarted> = containers.collect();
    if args.no_wait {
        for container in &containers {
            terminal.print(format!(
                "pod/{}: restart of container {} requested\n",
                name_of(&pod),
                container.name
            ))?;
        }
        return Ok(());
    }
    let waiting = Waiting {
        agent,
        pod: &pod,
        left: containers,
    };
    tokio::select! {
        ended = waiting.run(args.timeout, terminal) => ended,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            Err(anyhow!("interrupted; the restart continues").into())
        }
    }
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}

/// A container to restart.
struct Restarted {
    name: String,
    /// The instance to be replaced; empty if there was none.
    replaced: String,
}

struct Waiting<'a> {
    agent: &'a Agent,
    pod: &'a Value,
    left: Vec<Restarted>,
}

impl Waiting<'_> {
    async fn run(
        mut self,
        limit: Duration,
        terminal: &mut Terminal<'_>,
    ) -> Result<(), CommandError> {
        let name = name_of(self.pod).to_owned();
        let began = Instant::now();
        let mut failures = Vec::new();
        loop {
            let now = self.look().await?;
            let mut still = Vec::new();
            let mut states = Vec::new();
            for container in std::mem::take(&mut self.left) {
                match progress(&now, &container.name, &container.replaced) {
                    Progress::Done => terminal.print(format!(
                        "pod/{name}: container {} was restarted\n",
                        container.name
                    ))?,
                    Progress::Failed(why) => {
                        failures.push(format!("container {} {why}", container.name));
                    }
                    Progress::Waits(state) => {
                        states.push(format!("container {} {state}", container.name));
                        still.push(container);
                    }
                }
            }
            self.left = still;
            if self.left.is_empty() {
                break;
            }
            if !limit.is_zero() && began.elapsed() >= limit {
                failures.push(format!(
                    "not done after {}: {}",
                    format_go(limit),
                    states.join(", ")
                ));
                break;
            }
            sleep(PERIOD).await;
        }
        if failures.is_empty() {
            return Ok(());
        }
        Err(anyhow!("{}; see `rubelet why pod/{name}`", failures.join("; ")).into())
    }

    /// The pod's current state. Retries while the agent is being restarted.
    async fn look(&self) -> Result<Value, CommandError> {
        match self.agent.get(&pod_path(self.pod, "")).await {
            Ok(pod) if !pod["metadata"]["deletionTimestamp"].is_null() => {
                Err(anyhow!("the pod is being removed").into())
            }
            Ok(pod) => Ok(pod),
            Err(CallError::Away(_) | CallError::Broken(_)) => Ok(self.pod.clone()),
            Err(CallError::Refused(StatusCode::NOT_FOUND, _)) => {
                Err(anyhow!("the pod is gone").into())
            }
            Err(error) => Err(error.into()),
        }
    }
}
