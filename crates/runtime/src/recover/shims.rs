//! Shims that are still running.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_host::CgroupFs;
use rubelet_runtime_plan::recovery::SeenContainer;
use rubelet_shim::protocol::ContainerPhase;
use tokio::task::JoinSet;

use super::RecordedState;
use crate::{
    RuntimeSettings,
    container::exit::{from_shim, time},
    engine::Engine,
    error::{Result, RuntimeError},
    live_shim::{self, CONNECT_TIMEOUT, LiveShim},
    sandbox::shim_events,
    shim_client::ShimEventHandler,
};

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
            let shim =
                tokio::time::timeout(CONNECT_TIMEOUT, live_shim::connect(dir, on_event)).await;
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
