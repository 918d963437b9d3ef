//! `rubelet logs`: what a container wrote.

mod lines;
mod several;

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use rubelet_base::duration::parse_go;
use rubelet_server::Resource;
use serde_json::Value;

use several::Wanted;

use super::{
    agent::{Agent, Pieces, collection},
    failure::Failure,
    get::find,
    target::{NamespaceArgs, name_of, namespace_of, parse_pod},
    terminal::Terminal,
    url::Url,
};

/// Prints a log
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  rubelet logs web
  rubelet logs web -c sidecar -f --tail 20
  rubelet logs web sidecar
  rubelet logs web --all-containers --prefix -f
  rubelet logs web --previous --timestamps")]
pub(crate) struct LogsArgs {
    /// Pod: NAME, pod/NAME, or the beginning of a name
    pod: String,
    /// Container, which may also be given with -c
    #[arg(value_name = "CONTAINER", conflicts_with = "container")]
    second: Option<String>,
    /// Container; not needed where the pod has only one
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// The logs of all containers; one after the other, or with -f as the lines come
    #[arg(long, conflicts_with_all = ["container", "second"])]
    all_containers: bool,
    /// Put the pod's and the container's name before each line
    #[arg(long)]
    prefix: bool,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Go on until the container ends
    #[arg(short, long)]
    follow: bool,
    /// The log of the instance before the current one
    #[arg(short, long)]
    previous: bool,
    /// Only so many lines from the end; -1 means all
    #[arg(long, value_name = "LINES", default_value_t = -1, allow_negative_numbers = true)]
    tail: i64,
    /// Only lines younger than this, such as 30s, 5m or 2h
    #[arg(long, value_name = "DURATION", value_parser = parse_since, conflicts_with = "since_time")]
    since: Option<Duration>,
    /// Only lines after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since_time: Option<Timestamp>,
    /// Put its time before each line
    #[arg(long)]
    timestamps: bool,
    /// End after so many bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    limit_bytes: Option<u64>,
}

fn parse_since(text: &str) -> Result<Duration, String> {
    match parse_go(text) {
        Ok(Duration::ZERO) => Err("the duration must be more than 0".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) async fn run(
    agent: &Agent,
    args: &LogsArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    let wanted = parse_pod(&args.pod)?;
    let namespace = args.namespace.namespace();
    let pods = agent.list(&collection(Resource::Pods, namespace)).await?;
    let pod = find(agent, Resource::Pods, &pods, wanted, namespace).await?;
    let containers = match args.container.as_ref().or(args.second.as_ref()) {
        Some(container) => vec![container.clone()],
        None if args.all_containers => all_containers(&pod),
        None => vec![default_container(&pod, terminal)],
    };
    let print = async {
        if !args.all_containers && !args.prefix {
            let stream = agent.open(&url(args, &pod, &containers[0])).await?;
            return copy(stream, terminal).await;
        }
        let wanted: Vec<Wanted> = containers
            .iter()
            .map(|container| Wanted {
                container: container.clone(),
                url: url(args, &pod, container),
                prefix: match args.prefix {
                    true => format!("[pod/{}/{container}] ", name_of(&pod)),
                    false => String::new(),
                },
            })
            .collect();
        several::print(agent, &wanted, args.follow, terminal).await
    };
    if args.follow {
        return tokio::select! {
            ended = print => ended,
            interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        };
    }
    print.await
}

async fn copy(mut stream: Pieces, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
    while let Some(piece) = stream.next().await {
        terminal.print(piece.context("the log was cut off; perhaps the agent was stopped")?)?;
    }
    Ok(())
}

/// The names in a list of containers.
fn names(pod: &Value, list: &str) -> Vec<String> {
    let entries = pod["spec"][list].as_array();
    let entries = entries.map(Vec::as_slice).unwrap_or_default();
    let names = entries.iter().filter_map(|entry| entry["name"].as_str());
    names.map(str::to_owned).collect()
}

/// All containers, in the order in which they begin.
fn all_containers(pod: &Value) -> Vec<String> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| names(pod, list))
        .collect()
}

/// The container that is meant when none is named; says so where there was a choice.
fn default_container(pod: &Value, terminal: &mut Terminal<'_>) -> String {
    let (regular, init) = (names(pod, "containers"), names(pod, "initContainers"));
    let ephemeral = names(pod, "ephemeralContainers");
    let annotated = pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"]
        .as_str()
        .filter(|name| {
            let mut known = regular.iter().chain(&init).chain(&ephemeral);
            known.any(|known| known == name)
        });
    let chosen = annotated
        .or(regular.first().map(String::as_str))
        .unwrap_or_default()
        .to_owned();
    if regular.len() + init.len() + ephemeral.len() > 1 {
        let init = init.iter().map(|name| format!("{name} (init)"));
        let ephemeral = ephemeral.iter().map(|name| format!("{name} (ephem)"));
        let all = regular.iter().cloned().chain(ephemeral).chain(init);
        let all: Vec<String> = all.collect();
        terminal.note(&format!(
            "Defaulted container {chosen:?} out of: {}",
            all.join(", ")
        ));
    }
    chosen
}

fn url(args: &LogsArgs, pod: &Value, container: &str) -> Url {
    let flag = |set: bool| set.then_some("true");
    // Whole seconds is all that the API takes; rounding up shows a line too many, not too few.
    let seconds = |since: Duration| since.as_secs() + u64::from(since.subsec_nanos() > 0);
    Url::new(&Resource::Pods.path(Some(namespace_of(pod))))
        .segment(name_of(pod))
        .segment("log")
        .with("container", container)
        .maybe("follow", flag(args.follow))
        .maybe("previous", flag(args.previous))
        .maybe("timestamps", flag(args.timestamps))
        .maybe("tailLines", (args.tail >= 0).then(|| args.tail.to_string()))
        .maybe(
            "sinceSeconds",
            args.since.map(|since| seconds(since).to_string()),
        )
        .maybe("sinceTime", args.since_time.map(|time| time.to_string()))
        .maybe(
            "limitBytes",
            args.limit_bytes.map(|bytes| bytes.to_string()),
        )
}
