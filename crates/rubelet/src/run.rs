//! `rubelet run`: reads the configuration, starts the parts, waits for a signal, stops.

mod calls;
mod load;
mod lock;
mod logging;
mod manifests;
mod node;
pub(crate) mod notify;
mod parts;
mod preflight;

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use rubelet_config::{Flags, Resolved, flags_help, parse_flags};
use rubelet_kubelet::{agent::Agent, clock::Clock, events::Recorder, metrics::NodeMetrics};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinSet,
};
use tracing::{error, info, warn};

use crate::view::{LocalView, OfPleg, ViewParts};

/// So long the first list of the runtime may take before the sources start without it. What it is
/// good for: pods of another kubelet are found, and their UIDs are kept.
const FIRST_RELIST: Duration = Duration::from_secs(5);

/// Worker threads, whatever the machine: the agent is small.
const WORKERS: usize = 2;
/// Threads for file system work.
const BLOCKING_THREADS: usize = 8;
/// Stack of each thread; decoding manifests needs the most.
const STACK: usize = 512 * 1024;

/// Runs the agent until a signal. Exit codes: 0 stopped by a signal, 1 failed, 2 wrong flags.
pub(crate) fn main(args: &[String]) -> ExitCode {
    let flags = match parse_flags(args.iter().cloned()) {
        Ok(flags) => flags,
        Err(error) => {
            complain(&format!("{error}\nRun 'rubelet run --help' for the flags."));
            return ExitCode::from(2);
        }
    };
    if flags.help() {
        return print(&flags_help());
    }
    if flags.version() {
        return print(&format!("Kubernetes {}\n", rubelet_server::git_version()));
    }
    match start(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(flags: &Flags) -> anyhow::Result<()> {
    rubelet_host::alloc::limit_arenas();
    let resolved = load::resolve(flags)?;
    let form = match resolved.config.logging.format.as_str() {
        "json" => logging::Form::Json,
        _ => logging::Form::Text,
    };
    logging::start(form, resolved.config.logging.verbosity);
    for warning in &resolved.warnings {
        warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(STACK)
        .thread_keep_alive(Duration::from_secs(2))
        .enable_all()
        .build()
        .context("cannot start the threads of the agent")?;
    let result = runtime.block_on(serve(flags, resolved));
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

async fn serve(flags: &Flags, resolved: Resolved) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let root = Path::new(flags.root_dir());
    std::fs::create_dir_all(root)
        .with_context(|| format!("cannot make the root folder {}", root.display()))?;
    let _lock = lock::take(root)?;
    let lock_file = flags.lock_file().map(std::path::PathBuf::from);
    let _file_lock = match lock_file.clone() {
        Some(path) => {
            info!(path = %path.display(), "Takes the lock file");
            let taken = tokio::task::spawn_blocking(move || lock::wait_for_file(&path));
            tokio::select! {
                taken = taken => Some(taken.context("taking the lock file")??),
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
            }
        }
        None => None,
    };
    let contention = contention(lock_file.filter(|_| flags.exit_on_lock_contention()));
    parts::make_own_folders(root)?;
    let clock = Clock::system();
    let recorder = Recorder::new(clock.clone());
    let node = node::Node::look(flags, &resolved)?;
    preflight::check(&resolved, &node.cgroups)?;
    node::set_oom_score(resolved.config.oom_score_adj);
    info!(
        node = %node.name,
        version = env!("CARGO_PKG_VERSION"),
        root = %root.display(),
        endpoint = resolved.config.container_runtime_endpoint,
        "Rubelet starts"
    );
    let socket = rubelet_server::bind_unix(&parts::socket(&resolved)).await?;
    let health = match parts::health_address(&resolved)? {
        Some(address) => Some(rubelet_server::bind_health(address).await?),
        None => None,
    };

    let host = parts::host(flags, &resolved, &node)?;
    let metrics = NodeMetrics::new();
    let counted = Arc::clone(&metrics);
    let agent_parts = parts::agent(
        &resolved,
        &node,
        root,
        clock.clone(),
        Arc::clone(&host),
        counted,
    )?;
    let mut agent = Agent::start(agent_parts, recorder.clone());
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();

    tokio::select! {
        () = agent.first_relist(FIRST_RELIST) => {}
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    }
    let held = parts::own_folder(root).join("held-manifests.json");
    let adopted = manifests::adopted(&agent);
    let sources = manifests::start(&resolved, &node, &held, &clock, adopted).await?;
    tasks.spawn(manifests::keep_held(sources.held.clone(), held));
    tasks.spawn(manifests::raise(sources.events, recorder.clone()));
    let pleg = agent.pleg().clone();
    let view = LocalView::start(
        ViewParts {
            pods: Arc::clone(&agent.pods),
            recorder: recorder.clone(),
            lifecycle: Arc::new(OfPleg(agent.pleg().clone())),
            intents: agent.intents().clone(),
            prober: agent.prober().clone(),
            clock: clock.clone(),
            manifests: sources.manifests,
            desired: sources.desired.clone(),
            runtime: agent.runtime_state.clone(),
            silence: Arc::new(move || pleg.problem()),
            heartbeats: agent.heartbeats.clone(),
            metrics,
            log_path: Arc::new(move |pod, container, count| host.log_path(pod, container, count)),
            node_name: Arc::clone(&node.name),
            node_ips: Arc::clone(&node.ips),
            config: serde_json::to_value(&resolved.config).unwrap_or_default(),
            first_version: u64::try_from(clock.now().as_microsecond()).unwrap_or_default(),
        },
        &mut tasks,
    );
    let mut servers = JoinSet::new();
    servers.spawn({
        let (view, stopped) = (Arc::clone(&view), stopped.clone());
        async move { rubelet_server::serve_unix(socket, view, until(stopped)).await }
    });
    if let Some(listener) = health {
        servers.spawn(
            async move { rubelet_server::serve_health(listener, view, until(stopped)).await },
        );
    }
    tasks.spawn(notify::status(
        Arc::clone(&agent.pods),
        agent.runtime_state.clone(),
    ));
    tasks.spawn(notify::watchdog(agent.heartbeats.clone()));
    agent.run_pods(vec![sources.desired]);
    notify::ready();

    let result = tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
        why = agent.failed() => Err(anyhow::anyhow!(why)),
        watched = contention => watched.map(|()| "the lock file was opened by another process"),
    };
    notify::stopping();
    match &result {
        Ok(cause) => info!(cause, "Rubelet stops; pods go on"),
        Err(why) => error!("Rubelet stops: {why:#}"),
    }
    stop.send_replace(true);
    agent.stop().await;
    // Servers end by themselves: answers that are under way get two seconds.
    while servers.join_next().await.is_some() {}
    tasks.shutdown().await;
    result.map(drop)
}

/// Ends when another process wants the lock file; never without one.
async fn contention(path: Option<std::path::PathBuf>) -> anyhow::Result<()> {
    let Some(path) = path else {
        return std::future::pending().await;
    };
    tokio::task::spawn_blocking(move || lock::wait_for_contention(&path))
        .await
        .context("watching the lock file")?
}

/// Ends when the agent stops.
async fn until(mut stopped: watch::Receiver<bool>) {
    // The sender lives as long as the agent.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Before the log is set up, and for errors that end the process.
#[expect(
    clippy::print_stderr,
    reason = "errors that end the process go to stderr"
)]
fn complain(message: &str) {
    eprintln!("error: {message}");
}

fn print(text: &str) -> ExitCode {
    use std::io::Write as _;
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
