//! `sim-api`: the model API server as a program.
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person at a terminal.

use std::{
    fs::OpenOptions,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{ArgAction, Parser, ValueEnum};
use jiff::SignedDuration;
use sim_api::{
    AccessRule, Approval, Credentials, PROFILES, Rule, SimApi, SimApiConfig, User, profile,
};
use tokio::signal::unix::{SignalKind, signal};

const ABOUT: &str = "\
A model of the Kubernetes API server in one process and in memory: for trying a node, and kubectl \
against it, without a cluster. It schedules pods and hands requests for logs and sessions on to the node. \
What it holds is gone when it ends.

SIGINT or SIGTERM ends it; it then prints how often everything was asked, how often each fault hit, and \
what a node did that it must not.";

const RULES: &str = "\
Faults: VERB RESOURCE [CONDITION...] FAULT, separated by spaces. Delays of all rules that hold add up; of \
the other faults the first that holds wins.

  VERB is get, list, watch, create, update, patch, delete, deletecollection, read, write or *
  RESOURCE is a plural, perhaps with a part; each * stands for any text: pods, pods/status, *

  Conditions
    name=NAME      objects of that name
    user=NAME      requests of that user, * for any text, such as system:node:*
    chance=SHARE   of the requests that are meant, such as 10% or 0.1
    skip=N         not the first N of them
    times=N        at most N times

  Faults
    delay=TIME     answered that much later; delay=10ms..2s draws the time
    code=CODE      not done, answered with this error; retry-after=SECONDS before it goes with it
    lost[=CODE]    done, answered with this error (504)
    cut            not done, the connection is closed
    cut-after      done, the connection is closed before the answer
    cut-body       done, the connection is closed in the middle of the answer
    hang           not done and never answered
    stall[=TIME]   a watch that sends nothing more after that time (10s) and does not end
    end[=TIME]     a watch that ends after that time (10s)
    expire         a watch or list that gets 410 Gone: its resource version is too old
    nulls          done, and the answer has a null for all that is empty or absent

Examples:
  sim-api --kubeconfig-out admin.kubeconfig --node worker=node.kubeconfig
  sim-api --fault 'patch pods/status chance=10% code=409' --fault 'watch * end=20s'
  sim-api --profile rough --seed 7";

#[derive(Debug, Parser)]
#[command(about = ABOUT, after_help = RULES, max_term_width = 100)]
struct Options {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Speak HTTP without TLS
    #[arg(long)]
    plain: bool,
    /// Another name or address that the server's certificate is for
    #[arg(long, value_name = "NAME", action = ArgAction::Append)]
    name: Vec<String>,
    /// Where chance and UIDs come from, instead of the clock
    #[arg(long)]
    seed: Option<u64>,
    /// Write a kubeconfig of an administrator there
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Write a kubeconfig with a client certificate of that node
    #[arg(long, value_name = "NODE=FILE", action = ArgAction::Append)]
    node: Vec<String>,
    /// Write a kubeconfig with a token of the group system:bootstrappers there
    #[arg(long, value_name = "FILE")]
    bootstrap_kubeconfig_out: Option<PathBuf>,
    /// Write the certificate of the cluster's authority there
    #[arg(long, value_name = "FILE")]
    ca_out: Option<PathBuf>,
    /// A bearer token, and who it is
    #[arg(long, value_name = "TOKEN=USER[,GROUP...]", action = ArgAction::Append)]
    token: Vec<String>,
    /// What access reviews allow besides everything to system:masters
    #[arg(long, value_name = "USER VERB RESOURCE", action = ArgAction::Append)]
    allow: Vec<String>,
    /// What is forbidden, in reviews and in requests to this server
    #[arg(long, value_name = "USER VERB RESOURCE", action = ArgAction::Append)]
    deny: Vec<String>,
    /// Let everybody in as an administrator
    #[arg(long)]
    open: bool,
    /// Who approves certificate requests without being asked
    #[arg(long, value_enum, default_value = "manual")]
    approve: Approve,
    /// How long signed certificates last
    #[arg(long, value_name = "TIME", default_value = "8760h", value_parser = time)]
    certificate_lifetime: Duration,
    /// A bearer token to show to nodes, besides a client certificate of the cluster's authority
    #[arg(long, value_name = "TOKEN")]
    node_token: Option<String>,
    /// Leave pods where they are
    #[arg(long)]
    no_scheduler: bool,
    /// Do not taint nodes by their conditions, nor remove the pods of nodes that are gone
    #[arg(long)]
    no_node_lifecycle: bool,
    /// Give each node a range of pod addresses, 10.244.N.0/24
    #[arg(long)]
    pod_cidrs: bool,
    /// Do not give pods the token volume of their service account
    #[arg(long)]
    no_service_account_volumes: bool,
    /// Let nodes read and change what is not theirs
    #[arg(long)]
    no_node_restriction: bool,
    /// How long nodes are refused what a new pod names, as the real server's caches lag
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = time)]
    cache_lag: Duration,
    /// Do not offer lists as the first part of a watch
    #[arg(long)]
    no_streaming_lists: bool,
    /// How far the clock is off, such as 90s or -5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    clock_skew: Option<String>,
    /// A fault; see below
    #[arg(long, value_name = "RULE", action = ArgAction::Append, visible_alias = "faults")]
    fault: Vec<Rule>,
    /// A mix of faults: slow, busy, flaky or rough
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Log every request
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Approve {
    /// Nobody
    Manual,
    /// The server, client certificates of nodes
    Clients,
    /// The server, all
    All,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sim-api: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<()> {
    let level = if options.verbose {
        tracing::Level::DEBUG
    } else {
        tracing::Level::WARN
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("can't start")?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> Result<()> {
    let api = SimApi::start(config(&options)).await?;
    let rules = match &options.profile {
        Some(name) => profile(name).ok_or_else(|| no_profile(name))?,
        None => Vec::new(),
    };
    rules.into_iter().for_each(|rule| api.add_fault(rule));
    for rule in &options.fault {
        api.add_fault(rule.clone());
    }
    if let Some(skew) = &options.clock_skew {
        api.set_clock_skew(skew_of(skew)?);
    }
    for (texts, allow) in [(&options.deny, false), (&options.allow, true)] {
        for text in texts {
            api.add_access_rule(access(text, allow)?);
        }
    }
    for token in &options.token {
        let (token, user) = token_of(token)?;
        api.add_token(token, user);
    }
    write_files(&api, &options)?;
    println!("{}", api.url());
    let mut interrupted = signal(SignalKind::interrupt()).context("can't watch for SIGINT")?;
    let mut terminated = signal(SignalKind::terminate()).context("can't watch for SIGTERM")?;
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    report(&api);
    Ok(())
}

fn config(options: &Options) -> SimApiConfig {
    // Each state of a hasher is a random one.
    let seed = options
        .seed
        .unwrap_or_else(|| RandomState::new().build_hasher().finish());
    SimApiConfig {
        listen: options.listen,
        tls: !options.plain,
        names: options.name.clone(),
        seed,
        authenticate: !options.open,
        node_restriction: !options.no_node_restriction,
        node_authorization: !options.open && !options.no_node_restriction,
        cache_lag: options.cache_lag,
        scheduler: !options.no_scheduler,
        node_lifecycle: !options.no_node_lifecycle,
        pod_cidrs: options.pod_cidrs,
        service_account_volumes: !options.no_service_account_volumes,
        node_token: options.node_token.clone(),
        streaming_lists: !options.no_streaming_lists,
        approval: match options.approve {
            Approve::Manual => Approval::Manual,
            Approve::Clients => Approval::Clients,
            Approve::All => Approval::All,
        },
        certificate_lifetime: options.certificate_lifetime,
        ..SimApiConfig::default()
    }
}

fn no_profile(name: &str) -> anyhow::Error {
    let known: Vec<String> = PROFILES
        .iter()
        .map(|(name, what)| format!("  {name}: {what}"))
        .collect();
    anyhow!("--profile {name}: there are only\n{}", known.join("\n"))
}

fn time(text: &str) -> Result<Duration, String> {
    rubelet_base::duration::parse_go(text).map_err(|error| error.to_string())
}

fn skew_of(text: &str) -> Result<SignedDuration> {
    let (is_late, length) = match text.strip_prefix('-') {
        Some(length) => (true, length),
        None => (false, text),
    };
    let length = time(length).map_err(|error| anyhow!("--clock-skew {text}: {error}"))?;
    let skew = SignedDuration::try_from(length).context("--clock-skew")?;
    Ok(if is_late { -skew } else { skew })
}

fn access(text: &str, allow: bool) -> Result<AccessRule> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [user, verb, resource] = words.as_slice() else {
        bail!("{text:?} must be USER VERB RESOURCE, such as 'ann get nodes/proxy'");
    };
    let rule = if allow {
        AccessRule::allow(user, verb, resource)
    } else {
        AccessRule::deny(user, verb, resource)
    };
    let user = Some((*user).to_owned()).filter(|user| user != "*");
    Ok(AccessRule { user, ..rule })
}

fn token_of(text: &str) -> Result<(&str, User)> {
    let (token, who) = text
        .split_once('=')
        .context("--token must be TOKEN=USER[,GROUP...]")?;
    let mut names = who.split(',');
    let name = names.next().unwrap_or_default();
    let groups: Vec<&str> = names.collect();
    Ok((token, User::new(name, &groups)))
}

fn write_files(api: &SimApi, options: &Options) -> Result<()> {
    let lifetime = options.certificate_lifetime;
    let certified = |user: &User| -> Result<String> {
        let identity = api.client_certificate(user, lifetime)?;
        Ok(api.kubeconfig(&Credentials::Certificate(identity)))
    };
    if let Some(file) = &options.kubeconfig_out {
        write(file, &certified(&User::new("admin", &["system:masters"]))?)?;
    }
    for node in &options.node {
        let (name, file) = node.split_once('=').context("--node must be NODE=FILE")?;
        write(Path::new(file), &certified(&User::node(name))?)?;
    }
    if let Some(file) = &options.bootstrap_kubeconfig_out {
        let token = "rubele.0123456789abcdef";
        let groups = [
            "system:bootstrappers",
            "system:bootstrappers:kubeadm:default-node-token",
        ];
        api.add_token(token, User::new("system:bootstrap:rubele", &groups));
        write(file, &api.kubeconfig(&Credentials::Token(token.to_owned())))?;
    }
    if let Some(file) = &options.ca_out {
        write(file, &api.ca_pem())?;
    }
    Ok(())
}

/// Keys and tokens are for the owner only.
fn write(file: &Path, text: &str) -> Result<()> {
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.with_context(|| format!("can't write {}", file.display()))
}

fn report(api: &SimApi) {
    for ((verb, resource, code), count) in api.request_counts() {
        println!("{count:8}  {verb} {resource} -> {code}");
    }
    for (rule, hits) in api.fault_hits() {
        println!("{hits:8}  {rule}");
    }
    for violation in api.violations() {
        println!("violation: {violation}");
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_example_of_the_help_can_be_run() {
        let examples = RULES.split_once("Examples:").map_or("", |(_, text)| text);
        for example in examples.lines().filter(|line| !line.trim().is_empty()) {
            let words: Vec<String> = example
                .split('\'')
                .enumerate()
                .flat_map(|(at, part)| match at % 2 {
                    0 => part.split_whitespace().map(str::to_owned).collect(),
                    _ => vec![part.to_owned()],
                })
                .collect();
            let parsed = Options::try_parse_from(&words);
            assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
        }
        Options::command().debug_assert();
    }

    #[test]
    fn values_are_read_and_wrong_ones_refused_by_the_name_of_their_option() {
        let skew = |text| skew_of(text).map_err(|error| format!("{error:#}"));
        assert_eq!(skew("-5m"), Ok(SignedDuration::from_mins(-5)));
        assert!(skew("soon").is_err_and(|error| error.contains("--clock-skew soon")));
        let (token, user) = token_of("secret=ann,team,staff").unwrap();
        assert_eq!(
            (token, user),
            ("secret", User::new("ann", &["team", "staff"]))
        );
        assert!(token_of("secret").is_err_and(|error| error.to_string().contains("--token")));
        assert!(access("ann get", true).is_err_and(|error| error.to_string().contains("ann get")));
    }
}
