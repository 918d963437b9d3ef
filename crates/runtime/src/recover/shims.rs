//! Shims that are still running.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_host::CgroupFs;
use rubelet_runtime_plan::recovery::SeenContainer;
use rubelet_shim::{
    protocol::{Call, ContainerPhase, ShimReply, ShimState},
    spawn,
};
use tokio::task::JoinSet;

use super::RecordedState;
use crate::{
    RuntimeSettings,
    blocking::unbounded,
    container::exit::{from_shim, time},
    engine::Engine,
    error::{Result, RuntimeError},
    sandbox::shim_events,
    shim_client::{ShimClient, ShimEventHandler, process_handle},
};

/// Timeout for a shim's report of its pod. One that takes longer hangs.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A shim that responds.
pub(crate) struct LiveShim {
    pub(crate) link: Arc<ShimClient>,
    pub(super) state: ShimState,
}

impl LiveShim {
    /// Its containers in the form that the plan takes.
    pub(super) fn containers(&self) -> BTreeMap<String, SeenContainer> {
        let containers = self.state.containers.iter();
        containers
            .map(|container| {
                let seen = match (&container.exit, container.phase) {
                    (Some(exit), _) => SeenContainer::Exited(from_shim(exit)),
                    (None, ContainerPhase::Running) => SeenContainer::Running {
                        pid: container.pid,
                        started_at: time(container.started_at_ns),
                    },
                    // Exited without an exit record: treated as hanging; the removal kills it.
                    (None, _) => SeenContainer::Created { pid: container.pid },
                };
                (container.id.clone(), seen)
            })
            .collect()
    }
}

/// Connects to all shims concurrently. Shims that don't respond are omitted.
pub(super) async fn connect<'a>(
    engine: &Arc<Engine>,
    known: &RecordedState,
    directories: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, LiveShim> {
    let mut connecting = JoinSet::new();
    for id in directories {
        let on_event: ShimEventHandler = match known.sandboxes.get(id) {
            Some(sandbox) => shim_events::handler(engine, sandbox),
            None => Box::new(|_| {}),
        };
        let dir = engine.layout.sandbox(id).path().to_owned();
        let id = id.clone();
        connecting.spawn(async move {
            let shim = tokio::time::timeout(CONNECT_TIMEOUT, connect_one(dir, on_event)).await;
            (id, shim)
        });
    }
    let mut live = BTreeMap::new();
    while let Some(connected) = connecting.join_next().await {
        match connected {
            Ok((id, Ok(Ok(Some(shim))))) => {
                live.insert(id, shim);
            }
            Ok((_, Ok(Ok(None)))) => {}
            Ok((sandbox, Ok(Err(error)))) => {
                tracing::warn!(sandbox, %error, "Failed to query a shim");
            }
            Ok((sandbox, Err(_))) => tracing::warn!(sandbox, "Shim does not respond"),
            Err(error) => tracing::warn!(%error, "Failed to query a shim"),
        }
    }
    live
}

/// Names of the shims' cgroups, without those of another runtime: two runtimes on one machine have
/// different directories, but share the parent cgroup unless configured otherwise.
pub(crate) fn cgroups(cgroups: &CgroupFs, settings: &RuntimeSettings) -> Result<Vec<String>> {
    const FAILED: &str = "cannot list the shims' cgroups";
    let parent = &settings.shim_cgroup;
    let run = canonical(&settings.run);
    let mut ours = Vec::new();
    let children = cgroups.children(parent);
    for name in children.map_err(|error| RuntimeError::because(FAILED, &error))? {
        let Ok(cgroup) = parent.join(&name) else {
            continue;
        };
        let processes = cgroups.processes(&cgroup);
        let processes = processes.map_err(|error| RuntimeError::because(FAILED, &error))?;
        let mut directories = processes.into_iter().filter_map(directory_of);
        // An empty cgroup counts as one of this runtime.
        if directories.all(|directory| canonical(&directory).starts_with(&run)) {
            ours.push(name);
        }
    }
    Ok(ours)
}

/// The directory of a shim, from its command line.
fn directory_of(pid: i32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0);
    words.find(|word| *word == b"--dir")?;
    Some(PathBuf::from(OsStr::from_bytes(words.next()?)))
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Connects to the shim of a directory, if there is one.
pub(crate) async fn connect_one(
    dir: PathBuf,
    on_event: ShimEventHandler,
) -> Result<Option<LiveShim>> {
    let reached = unbounded(move || reach(&dir)).await?;
    let Some((socket, pid, handle)) = reached else {
        return Ok(None);
    };
    let link = ShimClient::open(socket, pid, handle, on_event)
        .map_err(|error| RuntimeError::because("cannot communicate with the shim", &error))?;
    match link.call(Call::State).await? {
        ShimReply::State(state) => Ok(Some(LiveShim {
            link,
            state: *state,
        })),
        other => Err(RuntimeError::failed(format!(
            "unexpected reply from the shim: {other:?}"
        ))),
    }
}

type ShimConnection = (std::os::unix::net::UnixStream, i32, OwnedFd);

fn reach(dir: &Path) -> Result<Option<ShimConnection>> {
    let socket = match spawn::connect(dir) {
        Ok(socket) => socket,
        Err(error) if error.is_gone() => return Ok(None),
        Err(error) => return Err(RuntimeError::because("cannot connect to the shim", &error)),
    };
    // The peer's PID stays valid while the pidfd is opened, because the peer holds the other end of
    // the connection.
    let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(|error| {
        RuntimeError::because(
            "cannot identify the process of the shim",
            &std::io::Error::from(error),
        )
    })?;
    let pid = peer.pid.as_raw_nonzero().get();
    let handle = process_handle(pid).map_err(|error| {
        RuntimeError::because("cannot identify the process of the shim", &error)
    })?;
    Ok(Some((socket, pid, handle)))
}
