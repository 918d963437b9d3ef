//! `rubelet run`: reads the configuration, starts the parts, waits for a signal, drains.

mod allocatable;
mod audit;
mod build;
mod calls;
mod credentials;
mod directories;
pub(crate) mod embedded;
mod eviction;
mod iptables_hint;
mod joined;
mod load;
mod lock;
mod log_rotation;
mod logging;
mod manifests;
mod memory;
mod node;
pub(crate) mod notify;
mod observe;
mod open;
mod other_runtime;
mod parts;
mod peer_pings;
mod port;
mod preflight;
mod runtime_name;
mod shutdown;
mod signals;
mod spawn;
mod stats;
mod system_cgroup;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use rubelet_config::{Flags, Invocation, Resolved, flags_help, parse_flags};
use rubelet_host::alloc;
use tokio::{sync::watch, task::spawn_blocking};
use tracing::{error, info, warn};

use self::{signals::StopSignals, spawn::Running};

/// Time that the sources wait for the first list of the runtime, which shows pods of another
/// kubelet: those keep their UIDs.
const FIRST_RELIST: Duration = Duration::from_secs(5);

/// Worker threads on any machine: the agent is small.
const WORKERS: usize = 2;
/// Threads for file system work, at most. They are started when they are needed and end when they are not.
const BLOCKING_THREADS: usize = 64;
/// Stack of each thread; decoding manifests needs the most. Unoptimised builds need several times
/// as much.
const STACK: usize = if cfg!(debug_assertions) { 2048 } else { 512 } * 1024;

/// Runs the agent until a signal; `as_kubelet`: it was called as `kubelet`. Exit codes: 0 stopped
/// by a signal, 1 failed, 2 wrong flags.
pub(crate) fn main(args: &[String], as_kubelet: bool) -> ExitCode {
    let flags = match parse_flags(args.iter().cloned()) {
        Ok(flags) => flags,
        Err(error) => {
            print_error(&format!("{error}\nRun 'rubelet run --help' for the flags."));
            return ExitCode::from(2);
        }
    };
    if flags.help() {
        return print(&flags_help());
    }
    if flags.version() {
        return print(&format!("Kubernetes {}\n", rubelet_server::git_version()));
    }
    match start(&flags, as_kubelet) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(flags: &Flags, as_kubelet: bool) -> anyhow::Result<()> {
    alloc::without_thread_caches();
    alloc::limit_arena();
    let mut resolved = load::resolve(flags)?;
    let kubelets = resolved.resolve_runtime_endpoint(Invocation {
        as_kubelet,
        file: flags.config(),
    });
    logging::start(&resolved.config.logging);
    for warning in &resolved.warnings {
        warn!("{warning}");
    }
    if let Some(missing) = resolved.not_yet() {
        warn!(
            missing,
            "This configuration uses features of the kubelet of Kubernetes 1.36 that are not supported yet"
        );
    }
    if kubelets {
        info!(
            endpoint = resolved.config.container_runtime_endpoint,
            "containerRuntimeEndpoint is empty: using the kubelet's default; write \"embedded\" for the embedded runtime"
        );
    }
    node::allow_open_files(resolved.config.max_open_files);
    let threads = threads()?;
    let result = threads.block_on(serve(flags, resolved));
    threads.shutdown_timeout(Duration::from_secs(2));
    result
}

fn threads() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(STACK)
        .thread_keep_alive(Duration::from_secs(2))
        .enable_all()
        .build()
        .context("cannot start the threads of the agent")
}

/// Runs the node until a signal, a failure, or contention for the lock file: opens its resources,
/// builds the agent, spawns the rest, waits, drains.
async fn serve(flags: &Flags, resolved: Resolved) -> anyhow::Result<()> {
    let mut signals = StopSignals::new()?;
    let root = Path::new(flags.root_dir());
    std::fs::create_dir_all(root)
        .with_context(|| format!("cannot create the root directory {}", root.display()))?;
    let _root_lock = lock::take(root)?;
    let lock_file = flags.lock_file().map(PathBuf::from);
    let _file_lock = match lock_file.clone() {
        Some(path) => {
            info!(path = %path.display(), "Waiting for the lock file");
            let taken = spawn_blocking(move || lock::wait_for_file(&path));
            tokio::select! {
                taken = taken => Some(taken.context("cannot lock the lock file")??),
                _ = signals.next() => return Ok(()),
            }
        }
        None => None,
    };
    let contention = contention(lock_file.filter(|_| flags.exit_on_lock_contention()));
    let opened = open::open(flags, &resolved, root).await?;
    tokio::select! {
        known = other_runtime::wait_until_known(&resolved, &opened.node.cgroups) => known?,
        _ = signals.next() => return Ok(()),
    }
    let built = build::build(flags, &resolved, root, &opened).await?;
    let limited = built.agent.node_allocatable(FIRST_RELIST);
    tokio::select! {
        ((), limited) = async { tokio::join!(built.agent.first_relist(FIRST_RELIST), limited) } => {
            limited?;
        }
        _ = signals.next() => return Ok(()),
    }
    let mut running = spawn::spawn(flags, resolved, root, opened, built).await?;
    notify::ready();

    let result = tokio::select! {
        signal = signals.next() => Ok(signal),
        why = running.agent.failed() => Err(anyhow!(why)),
        ended = &mut running.cluster.0 => match ended {
            Ok(Ok(never)) => match never {},
            Ok(Err(why)) => Err(why),
            Err(died) => Err(anyhow!("a task of the cluster connection failed: {died}")),
        },
        watched = contention => watched.map(|()| "the lock file was opened by another process"),
    };
    notify::stopping();
    match &result {
        Ok(cause) => info!(cause, "Shutting down; pods keep running"),
        Err(why) => error!("Shutting down: {why:#}"),
    }
    drain(running).await;
    result.map(drop)
}

/// Stops the node's tasks. Pods keep running.
async fn drain(running: Running) {
    let Running {
        agent,
        cluster,
        deferred_objects,
        stop,
        mut servers,
        mut tasks,
        source_tasks,
        audit,
        embedded,
    } = running;
    // Servers stop accepting now and end by themselves: current responses get two seconds.
    stop.send_replace(true);
    agent.stop().await;
    // After the agent: until it has stopped, its pods may request more objects.
    if let Some(objects) = deferred_objects {
        objects.flush().await;
    }
    drop(cluster);
    while servers.join_next().await.is_some() {}
    // After the servers, whose last responses are recorded too.
    if let Some(audit) = audit {
        audit.close().await;
    }
    tasks.shutdown().await;
    drop(source_tasks);
    // Last: until now the agent may still call it.
    if let Some(runtime) = embedded {
        runtime.shutdown().await;
    }
}

/// Resolves when another process wants the lock file; never without one.
async fn contention(path: Option<PathBuf>) -> anyhow::Result<()> {
    let Some(path) = path else {
        return std::future::pending().await;
    };
    spawn_blocking(move || lock::wait_for_contention(&path))
        .await
        .context("cannot watch the lock file")?
}

/// Resolves when the agent stops.
async fn until(mut stopped: watch::Receiver<bool>) {
    // The sender lives as long as the agent.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Before the log is set up, and for errors that end the process.
#[expect(
    clippy::print_stderr,
    reason = "errors that end the process go to stderr"
)]
fn print_error(message: &str) {
    eprintln!("error: {message}");
}

fn print(text: &str) -> ExitCode {
    use std::io::Write as _;
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
