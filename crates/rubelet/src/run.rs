//! `rubelet run`: reads the configuration, starts the parts, waits for a signal, stops.

mod allocatable;
mod audit;
mod calls;
mod credentials;
pub(crate) mod embedded;
mod joined;
mod load;
mod lock;
mod logging;
mod manifests;
mod node;
pub(crate) mod notify;
mod observe;
mod other_runtime;
mod parts;
mod port;
mod preflight;
mod quiet;
mod runtime_name;

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use rubelet_cluster::node::tell_pod_cidrs;
use rubelet_config::{Flags, Invocation, Resolved, flags_help, parse_flags};
use rubelet_kubelet::{
    agent::Agent, clock::Clock, events::Recorder, metrics::NodeMetrics, pods::PodSources,
};
use rubelet_server::secure::{bind_port, serve_read_only};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinSet,
};
use tracing::{error, info, warn};

use self::{
    joined::{Cluster, RunParts},
    observe::CountRequests,
    parts::Surroundings,
};
use crate::view::{LocalView, OfPleg, ViewParts};

/// So long the first list of the runtime may take before the sources start without it. What it is
/// good for: pods of another kubelet are found, and their UIDs are kept.
const FIRST_RELIST: Duration = Duration::from_secs(5);

/// Worker threads, whatever the machine: the agent is small.
const WORKERS: usize = 2;
/// Threads for file system work.
const BLOCKING_THREADS: usize = 8;
/// Stack of each thread; decoding manifests needs the most. Without optimisation it is several times
/// as much.
const STACK: usize = if cfg!(debug_assertions) { 2048 } else { 512 } * 1024;

/// Runs the agent until a signal; `as_kubelet`: it was called by the kubelet's name. Exit codes: 0 stopped by a signal, 1 failed, 2 wrong flags.
pub(crate) fn main(args: &[String], as_kubelet: bool) -> ExitCode {
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
    match start(&flags, as_kubelet) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(flags: &Flags, as_kubelet: bool) -> anyhow::Result<()> {
    rubelet_host::alloc::limit_arenas();
    let mut resolved = load::resolve(flags)?;
    let kubelets = resolved.settle_runtime(Invocation {
        as_kubelet,
        file: flags.config(),
    });
    let form = logging::Form::of(&resolved.config.logging.format);
    logging::start(form, resolved.config.logging.verbosity);
    for warning in &resolved.warnings {
        warn!("{warning}");
    }
    if let Some(missing) = resolved.not_yet() {
        warn!(
            missing,
            "Not done yet, though the kubelet of Kubernetes 1.36 does it with this configuration"
        );
    }
    if kubelets {
        info!(
            endpoint = resolved.config.container_runtime_endpoint,
            "containerRuntimeEndpoint is empty: uses the kubelet's default; write \"embedded\" for the runtime inside"
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
    let endpoint = match resolved.config.container_runtime_endpoint.as_str() {
        "" => embedded::ENDPOINT,
        endpoint => endpoint,
    };
    info!(
        node = %node.name,
        version = crate::build_info::VERSION,
        commit = crate::build_info::COMMIT,
        root = %root.display(),
        endpoint,
        "Rubelet starts"
    );
    let inside = match resolved.config.container_runtime_endpoint.is_empty() {
        true => {
            other_runtime::refuse().await?;
            let options = &resolved.rubelet.runtime;
            let mut settings = embedded::settings(options, &resolved.config.cgroup_driver)?;
            embedded::bound_logs(&mut settings, &resolved)?;
            match resolved.joined {
                true => embedded::wait_for_network(&mut settings),
                false => embedded::use_pod_cidr(&mut settings, &resolved.config.pod_cidr)?,
            }
            let socket = match options.socket_path() {
                Some(path) => Some(embedded::bind(&path).await?),
                None => None,
            };
            Some((embedded::start(settings).await?, socket))
        }
        false => None,
    };
    let socket = rubelet_server::bind_unix(&parts::socket(&resolved)).await?;
    let health = match parts::health_address(&resolved)? {
        Some(address) => Some(rubelet_server::bind_health(address).await?),
        None => None,
    };

    let port = port::open(&resolved).await?;
    let read_only = match resolved.read_only_address() {
        Some(address) => Some(bind_port(address).await?),
        None => None,
    };

    let metrics = NodeMetrics::new();
    let observer = Arc::new(CountRequests::new(Arc::clone(&metrics)));
    let audit = audit::open(&resolved.rubelet.audit, Arc::clone(&observer) as _)?;
    let cluster = match resolved.joined {
        true => Some(Cluster::new(flags, &resolved, &node, &clock, &metrics)?),
        false => None,
    };
    let surroundings = match &cluster {
        Some(cluster) => Surroundings {
            cluster: Arc::clone(&cluster.gate) as _,
            objects: Arc::clone(&cluster.objects) as _,
        },
        None => Surroundings::alone(&resolved.config),
    };
    let objects = Arc::clone(&surroundings.objects);
    let host = parts::host(flags, &resolved, &node)?;
    let (inside, cri_socket) = inside.unzip();
    let services = parts::services(&resolved, &metrics, inside.as_ref())?;
    let calls = Arc::clone(&services.calls);
    let endpoint = Arc::clone(&services.endpoint);
    let name_record = parts::own_folder(root).join("runtime-name.json");
    let runtime_name = runtime_name::load(&name_record, &endpoint).await;
    let mut agent_parts = parts::agent(
        &resolved,
        &node,
        root,
        clock.clone(),
        services,
        runtime_name,
        Arc::clone(&host),
        Arc::clone(&metrics),
        surroundings,
    );
    agent_parts.logins = agent_parts
        .logins
        .with_plugins(credentials::plugins(flags)?);
    let (cri, images) = (
        Arc::clone(&agent_parts.runtime),
        Arc::clone(&agent_parts.images),
    );
    let mut agent = Agent::start(agent_parts, recorder.clone());
    calls.tell(agent.pleg().clone());
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let state = agent.runtime_state.clone();
    tasks.spawn(runtime_name::keep(state, endpoint, name_record));

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
    let silence: Arc<dyn Fn() -> Option<String> + Send + Sync> = Arc::new(move || pleg.problem());
    let late = cluster.as_ref().map(|cluster| Arc::clone(&cluster.objects));
    let (api_desired, trouble) = match &cluster {
        Some(cluster) => (Some(cluster.desired()), cluster.trouble()),
        None => (None, notify::ClusterTrouble::none()),
    };
    let manifests = sources.desired.clone();
    let wanted: PodSources = match &api_desired {
        // A source that is not configured is never ready.
        Some(api) if !manifests::are_configured(&resolved) => vec![api.clone()],
        Some(api) => vec![manifests.clone(), api.clone()],
        None => vec![manifests.clone()],
    };
    let view = LocalView::start(
        ViewParts {
            pods: Arc::clone(&agent.pods),
            recorder: recorder.clone(),
            lifecycle: Arc::new(OfPleg(agent.pleg().clone())),
            intents: agent.intents().clone(),
            objects,
            prober: agent.prober().clone(),
            clock: clock.clone(),
            manifests: sources.manifests,
            desired: wanted.clone(),
            runtime: agent.runtime_state.clone(),
            silence: Arc::clone(&silence),
            cluster: trouble.clone(),
            heartbeats: agent.heartbeats.clone(),
            metrics: Arc::clone(&metrics),
            audit: audit.clone(),
            log_path: Arc::new(move |pod, container, count| host.log_path(pod, container, count)),
            node_name: Arc::clone(&node.name),
            node_ips: node.ips.subscribe(),
            config: resolved.to_value(),
            not_yet: resolved.not_yet(),
            first_version: u64::try_from(clock.now().as_microsecond()).unwrap_or_default(),
        },
        &mut tasks,
    );
    let mut servers = JoinSet::new();
    if let (Some(runtime), Some(listener)) = (inside.clone(), cri_socket.flatten()) {
        servers.spawn(embedded::serve_cri(
            listener,
            runtime,
            until(stopped.clone()),
        ));
    }
    servers.spawn({
        let (view, stopped) = (Arc::clone(&view), stopped.clone());
        let (observer, audit) = (Arc::clone(&observer) as _, audit.clone());
        async move {
            rubelet_server::serve_unix(socket, view, observer, audit, until(stopped)).await;
        }
    });
    if let Some(listener) = health {
        let (view, stopped) = (Arc::clone(&view), stopped.clone());
        let observer = Arc::clone(&observer) as _;
        servers.spawn(async move {
            rubelet_server::serve_health(listener, view, observer, until(stopped)).await;
        });
    }
    if let Some(listener) = read_only {
        let (view, stopped) = (Arc::clone(&view), stopped.clone());
        servers.spawn(async move {
            serve_read_only(listener, view, observer, until(stopped)).await;
        });
    }
    tasks.spawn(notify::status(
        Arc::clone(&agent.pods),
        agent.runtime_state.clone(),
        trouble,
    ));
    if !resolved.joined {
        tasks.spawn(node.ips.clone().follow());
    }
    tasks.spawn(notify::watchdog(agent.heartbeats.clone()));
    tasks.spawn(quiet::give_back(Arc::clone(&agent.pods)));
    agent.run_pods(wanted);
    let port = port.map(|port| {
        let view = Arc::clone(&view) as _;
        port.showing(
            view,
            Arc::clone(&metrics),
            audit.clone(),
            &node,
            stopped.clone(),
        )
    });
    let joined = match cluster {
        Some(cluster) => {
            let run_parts = RunParts {
                root: root.to_owned(),
                node,
                clock: clock.clone(),
                recorder: recorder.clone(),
                board: Arc::clone(&agent.pods),
                intents: agent.intents().clone(),
                runtime: cri,
                images,
                image_changes: calls.image_changes(),
                runtime_state: agent.runtime_state.clone(),
                problems: silence,
                metrics,
                manifests,
                port,
            };
            AbortOnDrop(tokio::spawn(cluster.run(run_parts, resolved)))
        }
        None => {
            let cidrs = resolved.config.pod_cidr.clone();
            if inside.is_none() && !cidrs.is_empty() {
                tasks.spawn(tell_pod_cidrs(cri, cidrs));
            }
            if let Some(port) = port {
                servers.spawn(port.serve_alone(flags, &resolved, &clock)?);
            }
            AbortOnDrop(tokio::spawn(std::future::pending()))
        }
    };
    let mut joined = joined;
    notify::ready();

    let result = tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
        why = agent.failed() => Err(anyhow::anyhow!(why)),
        ended = &mut joined.0 => match ended {
            Ok(Ok(never)) => match never {},
            Ok(Err(why)) => Err(why),
            Err(died) => Err(anyhow::anyhow!("the task of the cluster died: {died}")),
        },
        watched = contention => watched.map(|()| "the lock file was opened by another process"),
    };
    notify::stopping();
    match &result {
        Ok(cause) => info!(cause, "Rubelet stops; pods go on"),
        Err(why) => error!("Rubelet stops: {why:#}"),
    }
    stop.send_replace(true);
    agent.stop().await;
    if let Some(objects) = late {
        objects.flush().await;
    }
    drop(joined);
    // Servers end by themselves: answers that are under way get two seconds.
    while servers.join_next().await.is_some() {}
    if let Some(audit) = audit {
        audit.close().await;
    }
    tasks.shutdown().await;
    if let Some(runtime) = inside {
        runtime.shutdown().await;
    }
    result.map(drop)
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop(tokio::task::JoinHandle<anyhow::Result<std::convert::Infallible>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
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
