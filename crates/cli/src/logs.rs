//! `rubelet logs`: what a container wrote.

mod lines;
mod several;

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use rubelet_base::duration::parse_go;
use rubelet_server::Resource;
use serde_json::Value;

use several::LogTarget;

use super::{
    agent::{Agent, ResponseStream},
    containers,
    failure::CommandError,
    target::{NamespaceArgs, find_pod, name_of, namespace_of, parse_pod},
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
    /// Pod: NAME, pod/NAME, or a unique prefix of its name
    pod: String,
    /// Container, which may also be given with -c
    #[arg(value_name = "CONTAINER", conflicts_with = "container")]
    second: Option<String>,
    /// Container; not needed if the pod has only one
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Print the logs of all containers: one after the other, or with -f as lines arrive
    #[arg(long, conflicts_with_all = ["container", "second"])]
    all_containers: bool,
    /// Prefix each line with the names of the pod and the container
    #[arg(long)]
    prefix: bool,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Stream the log until the container exits
    #[arg(short, long)]
    follow: bool,
    /// Print the log of the previous instance of the container
    #[arg(short, long)]
    previous: bool,
    /// Number of lines from the end to print; -1 prints all
    #[arg(long, value_name = "LINES", default_value_t = -1, allow_negative_numbers = true)]
    tail: i64,
    /// Only lines newer than a duration, such as 30s, 5m or 2h
    #[arg(long, value_name = "DURATION", value_parser = parse_since, conflicts_with = "since_time")]
    since: Option<Duration>,
    /// Only lines after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since_time: Option<Timestamp>,
    /// Prefix each line with its timestamp
    #[arg(long)]
    timestamps: bool,
    /// Maximum number of bytes to print
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
) -> Result<(), CommandError> {
    let wanted = parse_pod(&args.pod)?;
    let namespace = args.namespace.namespace();
    let pod = find_pod(agent, wanted, namespace).await?;
    let names = match args.container.as_ref().or(args.second.as_ref()) {
        Some(container) => vec![container.clone()],
        None if args.all_containers => containers::all(&pod),
        None => vec![containers::by_default(&pod, false, terminal)],
    };
    let print = async {
        if !args.all_containers && !args.prefix {
            let stream = agent.open(&url(args, &pod, &names[0])).await?;
            return copy(stream, terminal).await;
        }
        let wanted: Vec<LogTarget> = names
            .iter()
            .map(|container| LogTarget {
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

async fn copy(mut stream: ResponseStream, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
    while let Some(piece) = stream.next().await {
        terminal.print(piece.context("the log ended early: the agent closed the connection")?)?;
    }
    Ok(())
}

fn url(args: &LogsArgs, pod: &Value, container: &str) -> Url {
    let flag = |set: bool| set.then_some("true");
    // The API takes whole seconds only; rounding up prints a line too many, not too few.
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
