//! `chaos-cri`: the proxy as a program.
#![allow(clippy::print_stdout, clippy::print_stderr)] // Its output is for a terminal.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use chaos_cri::{Chaos, PROFILES, Rule, Rules, parse_file, profile};
use clap::{ArgAction, Parser};
use tokio::signal::unix::{SignalKind, signal};

const ABOUT: &str = "\
A proxy between an agent and a CRI runtime that injects faults. It listens on one unix socket and \
forwards every call to another. Without rules it changes nothing: the kubelet, crictl and rubelet \
work through it as before.

Rules define the faults, and a seed their random decisions: the same seed and rules make the same \
decisions in every run, call by call. Each injected fault is logged in one line on standard error \
with its seed and rule. SIGINT or SIGTERM ends the proxy; it then prints the number of faults of \
each rule.";

const RULES: &str = "\
Rules: CALL [CONDITION...] FAULT, separated by spaces. The first rule that matches wins.

  CALL is an RPC of CRI v1; each * in it matches any text: ContainerStatus, List*, *

  Conditions
    id=PREFIX      prefix of the ID of the container or sandbox
    pod=NAME       UID, name or namespace/name of the pod, * for any text. The pod of an identifier
                   is known once its creation or a list that contains it has passed the proxy
    event=KIND     CREATED, STARTED, STOPPED or DELETED; messages of GetContainerEvents
    chance=SHARE   of the matching calls, such as 10% or 0.1
    skip=N         except for the first N of them
    every=N        then only each Nth, such as every=2 for a fault that comes and goes
    times=N        at most N times

  Faults of any call
    delay=TIME     delayed; with delay=10ms..2s by a random time. Messages of streams stay in order
    hang           accepted, not forwarded, never answered
    stall          forwarded, but the response is never read, so that the runtime cannot send it
    fail[=CODE]    not forwarded, fails with this gRPC code (UNAVAILABLE). UNIMPLEMENTED is that of an
                   older runtime, OK ends a stream at once like a runtime with events disabled
    eof            the response or stream ends without a status
    reset          the response or stream is reset with RST_STREAM
    cut            all connections of the proxy are closed, as by a restart of the runtime
    freeze=TIME    the client's connection stays open, without transfer of data for this time

  Faults of unary calls
    lost[=CODE]    forwarded and executed by the runtime, the response replaced by this error;
                   without a code, no response

  Faults of lists: ListPodSandbox, ListContainers, StreamPodSandboxes, StreamContainers
    empty          no items; with id= or pod=, without these
    partial[=SHARE]  this share is missing (50%); with id= or pod=, of these
    huge[=SIZE]    padded to more than this size (17MiB)
    running        exited containers are reported as running; with id= or pod=, these

  Faults of statuses
    running        ContainerStatus: an exited container is reported as running
    nil-sandbox    PodSandboxStatus: without a status
    wrong-uid[=UID]  PodSandboxStatus: of another pod

  Faults of streams: GetContainerEvents, Stream*
    withhold       no headers before the first message
    end            the stream ends early with status OK
    drop           this message is dropped
    duplicate[=N]  this message is sent N times (2)
    swap           this message is swapped with the next one
    reverse[=N]    this message and the next ones, N in total (4), in reverse order, within 500ms

  Faults of events: GetContainerEvents
    nil-sandbox    the event without the sandbox's status
    wrong-uid[=UID]  the event of another pod
    stale          after this event an earlier one of the container, with a newer timestamp
    replay[=N]     before this event, N old ones (100)

Examples:
  chaos-cri --listen /tmp/chaos.sock --rule 'ContainerStatus id=3f2a hang'
  chaos-cri --listen /tmp/chaos.sock --seed 7 --profile rough
  chaos-cri --listen /tmp/chaos.sock \\
      --rule 'GetContainerEvents event=STOPPED chance=50% drop' \\
      --rule 'CreateContainer lost=DEADLINE_EXCEEDED times=1'
  rubelet run --container-runtime-endpoint unix:///tmp/chaos.sock ...
  crictl --runtime-endpoint unix:///tmp/chaos.sock ps";

#[derive(Debug, Parser)]
#[command(
    name = "chaos-cri",
    about = "A proxy in front of a CRI runtime that injects faults"
)]
#[command(long_about = ABOUT, after_help = "See --help for the faults and the syntax of rules.")]
#[command(after_long_help = RULES)]
struct Options {
    /// Unix socket to listen on, for the agent
    #[arg(long, value_name = "PATH", value_parser = socket)]
    listen: PathBuf,
    /// Socket of the runtime
    #[arg(
        long,
        value_name = "PATH",
        value_parser = socket,
        default_value = "/run/containerd/containerd.sock"
    )]
    runtime: PathBuf,
    /// Rule; can be repeated
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<Rule>,
    /// File of rules, one per line; # starts a comment
    #[arg(long = "rules", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Profile: a set of rules chosen by the seed, added after the given rules
    #[arg(long, value_name = "NAME", value_parser = PROFILES.map(|(name, _)| name))]
    #[arg(long_help = profiles())]
    profile: Option<String>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Do not log injected faults
    #[arg(short, long, action = ArgAction::SetTrue)]
    quiet: bool,
}

fn profiles() -> String {
    let lines = PROFILES.map(|(name, about)| format!("\n  {name}: {about}"));
    format!(
        "Profile: a set of rules chosen by the seed, added after the given rules:{}",
        lines.concat()
    )
}

/// A path, with or without `unix://` before it.
fn socket(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if path.is_empty() || path.contains("://") {
        return Err("not the path of a unix socket".to_owned());
    }
    Ok(PathBuf::from(path))
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chaos-cri: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let level = if options.quiet {
        tracing::Level::WARN
    } else {
        tracing::Level::INFO
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    if options.listen == options.runtime {
        bail!("--listen and --runtime are the same socket");
    }
    let rules = rules(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start an async runtime")?;
    runtime.block_on(serve(options, rules))
}

fn rules(options: &Options) -> Result<Vec<Rule>> {
    let mut rules = options.rules.clone();
    if let Some(path) = &options.file {
        let file = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
        rules.extend(parse_file(&text).with_context(|| format!("{file}"))?);
    }
    if let Some(name) = &options.profile {
        rules.extend(profile(name, options.seed).unwrap_or_default());
    }
    Ok(rules)
}

async fn serve(options: &Options, rules: Vec<Rule>) -> Result<()> {
    // Before the proxy reports that it is ready.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shown: String = rules.iter().map(|rule| format!("\n  {rule}")).collect();
    let rules = Rules::new(options.seed, rules);
    let chaos = Chaos::start(&options.listen, &options.runtime, rules).await?;
    let (front, back, seed) = (
        options.listen.display(),
        options.runtime.display(),
        options.seed,
    );
    if shown.is_empty() {
        eprintln!("{front} -> {back}, no rules: nothing is changed");
    } else {
        eprintln!("{front} -> {back}, seed {seed}, rules:{shown}");
    }
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    let injected = chaos.injected();
    let total: u64 = injected.iter().map(|hit| hit.count).sum();
    println!("seed {seed}: {total} faults injected");
    for hit in injected {
        println!("{:>8}  {}", hit.count, hit.rule);
    }
    Ok(())
}
