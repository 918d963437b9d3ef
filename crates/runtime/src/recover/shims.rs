//! Supervisors that are still there.

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
    protocol::{Answer, Call, ContainerPhase, State},
    spawn,
};
use tokio::task::JoinSet;

use super::Known;
use crate::{
    RuntimeSettings,
    container::end::{from_shim, time},
    engine::{Engine, unbounded},
    fault::{Fault, Outcome},
    link::{Reporter, ShimLink, process_handle},
    sandbox::reports,
};

/// How long a supervisor may take to tell of its pod. One that needs longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A supervisor that answers.
pub(crate) struct LiveShim {
    pub(crate) link: Arc<ShimLink>,
    pub(super) state: State,
}

impl LiveShim {
    /// Its containers as the plan wants to know them.
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
                    // One that has ended and does not tell how is as good as one that hangs: it is
                    // killed when it is removed.
                    (None, _) => SeenContainer::Created { pid: container.pid },
                };
                (container.id.clone(), seen)
            })
            .collect()
    }
}

/// Connects to all supervisors at the same time. Those that don't answer are left out.
pub(super) async fn connect<'a>(
    engine: &Arc<Engine>,
    known: &Known,
    folders: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, LiveShim> {
    let mut connecting = JoinSet::new();
    for id in folders {
        let reporter: Reporter = match known.sandboxes.get(id) {
            Some(sandbox) => reports::reporter(engine, sandbox),
            None => Box::new(|_| {}),
        };
        let dir = engine.layout.sandbox(id).path().to_owned();
        let id = id.clone();
        connecting.spawn(async move {
            let shim = tokio::time::timeout(PATIENCE, connect_one(dir, reporter)).await;
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
            Ok((sandbox, Ok(Err(fault)))) => {
                tracing::warn!(sandbox, %fault, "a supervisor can't be asked");
            }
            Ok((sandbox, Err(_))) => tracing::warn!(sandbox, "a supervisor does not answer"),
            Err(error) => tracing::warn!(%error, "a supervisor can't be asked"),
        }
    }
    live
}

/// Names of the supervisors' cgroups, without those of another runtime's: two runtimes on one machine
/// have folders of their own, and share the cgroup if nobody has given them others.
pub(crate) fn cgroups(cgroups: &CgroupFs, settings: &RuntimeSettings) -> Outcome<Vec<String>> {
    const FAILED: &str = "cannot look at the supervisors' cgroups";
    let parent = &settings.shim_cgroup;
    let run = canonical(&settings.run);
    let mut ours = Vec::new();
    let children = cgroups.children(parent);
    for name in children.map_err(|error| Fault::because(FAILED, &error))? {
        let Ok(cgroup) = parent.join(&name) else {
            continue;
        };
        let processes = cgroups.processes(&cgroup);
        let processes = processes.map_err(|error| Fault::because(FAILED, &error))?;
        let mut folders = processes.into_iter().filter_map(folder_of);
        if folders.all(|folder| canonical(&folder).starts_with(&run)) {
            ours.push(name);
        }
    }
    Ok(ours)
}

/// The folder that a supervisor was started for, from its command line.
fn folder_of(pid: i32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0);
    words.find(|word| *word == b"--dir")?;
    Some(PathBuf::from(OsStr::from_bytes(words.next()?)))
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The supervisor in a folder, if there is one.
pub(crate) async fn connect_one(dir: PathBuf, reporter: Reporter) -> Outcome<Option<LiveShim>> {
    let reached = unbounded(move || reach(&dir)).await?;
    let Some((socket, pid, handle)) = reached else {
        return Ok(None);
    };
    let link = ShimLink::open(socket, pid, handle, reporter)
        .map_err(|error| Fault::because("cannot talk to it", &error))?;
    match link.call(Call::State).await? {
        Answer::State(state) => Ok(Some(LiveShim {
            link,
            state: *state,
        })),
        other => Err(Fault::failed(format!("unexpected answer: {other:?}"))),
    }
}

type Reached = (std::os::unix::net::UnixStream, i32, OwnedFd);

fn reach(dir: &Path) -> Outcome<Option<Reached>> {
    let socket = match spawn::connect(dir) {
        Ok(socket) => socket,
        Err(error) if error.is_gone() => return Ok(None),
        Err(error) => return Err(Fault::because("no connection", &error)),
    };
    // Whoever listens; it holds the other end while the handle is taken.
    let peer = rustix::net::sockopt::socket_peercred(&socket)
        .map_err(|error| Fault::because("no process", &std::io::Error::from(error)))?;
    let pid = peer.pid.as_raw_nonzero().get();
    let handle = process_handle(pid).map_err(|error| Fault::because("no process", &error))?;
    Ok(Some((socket, pid, handle)))
}
