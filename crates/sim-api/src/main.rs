//! `sim-api`: the model API server as a program.
#![allow(clippy::print_stdout, clippy::print_stderr)] // Its output is for a terminal.

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
against it, without a cluster. It schedules pods and forwards requests for logs and sessions to the node. \
Its objects are lost when it exits.

SIGINT or SIGTERM ends it; it then prints the number of requests, the number of faults of each rule, and \
violations by nodes.";

const RULES: &str = "\
Faults: VERB RESOURCE [CONDITION...] FAULT, separated by spaces. Delays of all rules that match add up; of \
the other faults the first that matches wins.

  VERB is get, list, watch, create, update, patch, delete, deletecollection, read, write or *
  RESOURCE is a plural, optionally with a subresource; each * matches any text: pods, pods/status, *

  Conditions
    name=NAME      objects of this name
    user=NAME      requests of this user, * for any text, such as system:node:*
    chance=SHARE   of the matching requests, such as 10% or 0.1
    skip=N         except for the first N of them
    times=N        at most N times

  Faults
    delay=TIME     delayed by this time; delay=10ms..2s by a random time
    code=CODE      not executed, fails with this error; retry-after=SECONDS before it sets the header
    lost[=CODE]    executed, but fails with this error (504)
    cut            not executed, the connection is closed
    cut-after      executed, the connection is closed before the response
    cut-body       executed, the connection is closed in the middle of the response
    hang           not executed, no response
    stall[=TIME]   a watch that sends nothing after this time (10s) and does not end
    end[=TIME]     a watch that ends after this time (10s)
    expire         a watch or list that fails with 410 Gone: its resource version is too old
    nulls          executed, and the response has null for everything that is empty or absent

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
    /// Use HTTP without TLS
    #[arg(long)]
    plain: bool,
    /// Additional name or address of the server's certificate
    #[arg(long, value_name = "NAME", action = ArgAction::Append)]
    name: Vec<String>,
    /// Seed of random decisions and UIDs, instead of the clock
    #[arg(long)]
    seed: Option<u64>,
    /// Write a kubeconfig of an administrator to this file
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Write a kubeconfig with a client certificate of this node
    #[arg(long, value_name = "NODE=FILE", action = ArgAction::Append)]
    node: Vec<String>,
    /// Write a kubeconfig with a token of the group system:bootstrappers to this file
    #[arg(long, value_name = "FILE")]
    bootstrap_kubeconfig_out: Option<PathBuf>,
    /// Write the certificate of the cluster's authority to this file
    #[arg(long, value_name = "FILE")]
    ca_out: Option<PathBuf>,
    /// A bearer token, and its user
    #[arg(long, value_name = "TOKEN=USER[,GROUP...]", action = ArgAction::Append)]
    token: Vec<String>,
    /// Allow this in access reviews; system:masters may do everything
    #[arg(long, value_name = "USER VERB RESOURCE", action = ArgAction::Append)]
    allow: Vec<String>,
    /// Deny this in access reviews and in requests to this server
    #[arg(long, value_name = "USER VERB RESOURCE", action = ArgAction::Append)]
    deny: Vec<String>,
    /// Accept every client as an administrator
    #[arg(long)]
    open: bool,
    /// Which certificate requests are approved automatically
    #[arg(long, value_enum, default_value = "manual")]
    approve: Approve,
    /// Lifetime of signed certificates
    #[arg(long, value_name = "TIME", default_value = "8760h", value_parser = time)]
    certificate_lifetime: Duration,
    /// A bearer token for requests to nodes, in addition to a client certificate
    #[arg(long, value_name = "TOKEN")]
    node_token: Option<String>,
    /// Do not bind pods to nodes
    #[arg(long)]
    no_scheduler: bool,
    /// Do not taint nodes by their conditions, nor remove the pods of deleted nodes
    #[arg(long)]
    no_node_lifecycle: bool,
    /// Assign a pod CIDR to each node, 10.244.N.0/24
    #[arg(long)]
    pod_cidrs: bool,
    /// Do not add the token volume of the service account to pods
    #[arg(long)]
    no_service_account_volumes: bool,
    /// Allow nodes to read and change objects of others
    #[arg(long)]
    no_node_restriction: bool,
    /// Lag of the pod caches, during which nodes are denied what a new pod references
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = time)]
    cache_lag: Duration,
    /// Do not support lists as the first part of a watch
    #[arg(long)]
    no_streaming_lists: bool,
    /// Skew of the clock, such as 90s or -5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    clock_skew: Option<String>,
    /// A fault; see below
    #[arg(long, value_name = "RULE", action = ArgAction::Append, visible_alias = "faults")]
    fault: Vec<Rule>,
    /// A profile of faults: slow, busy, flaky or rough
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Log every request
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Approve {
    /// None
    Manual,
    /// Client certificates of nodes
    Clients,
    /// All
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
        .context("cannot start")?;
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
    let mut interrupted = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let mut terminated = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    report(&api);
    Ok(())
}

fn config(options: &Options) -> SimApiConfig {
    // Each hasher state is random.
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

/// Keys and tokens must be readable by the owner only.
fn write(file: &Path, text: &str) -> Result<()> {
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", file.display()))
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
    fn invalid_values_are_refused_with_their_option() {
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
