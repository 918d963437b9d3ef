//! Keeps the OOM killer ending whole containers, as `singleProcessOOMKill: false` says (`memory.oom.group`).
//!
//! The cgroup of a container is a scope of systemd with its driver, and systemd sets the file to its own default whenever
//! it sets anything of the scope: after each `systemctl daemon-reload`, and for new limits. Then an OOM kill would end one
//! process and leave the rest of the container running. systemd has a property for that, `OOMPolicy`. Before version 253
//! scopes have none, and with it systemd also ends a container that runs out of memory in a cgroup of its own only.

use std::{
    collections::{BTreeSet, HashMap},
    future::pending,
    io::ErrorKind,
    sync::Arc,
    time::Duration,
};

use rubelet_api::status::PodStatus;
use rubelet_base::{ContainerId, PodUid};
use rubelet_host::{cgroup::OomGroupFile, inotify::Inotify};
use rubelet_node_state::pod_board::PodBoard;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::host::LocalHost;

/// The least time between two looks at changed files: a privileged container can change its own all the time.
const PAUSE: Duration = Duration::from_secs(1);

/// Keeps it so for the running containers of the pods, for ever. Nothing runs while nothing changes.
pub async fn keep_group_kills(pods: Arc<PodBoard>, host: LocalHost) {
    if host.kills_groups() {
        match Inotify::new() {
            Ok(changes) => {
                let groups = GroupKills {
                    pods,
                    host,
                    changes,
                    seen: 0,
                    watched: HashMap::new(),
                };
                groups.keep().await;
            }
            Err(error) => warn!(
                %error,
                "Cannot watch cgroups: after `systemctl daemon-reload` an OOM kill may end one process of a container only"
            ),
        }
    }
    pending::<()>().await;
}

struct GroupKills {
    pods: Arc<PodBoard>,
    host: LocalHost,
    changes: Inotify,
    /// The version of the board that was looked at.
    seen: u64,
    /// The files of running containers; `None` where systemd does not manage the cgroup.
    watched: HashMap<PodUid, HashMap<ContainerId, Option<WatchedFile>>>,
}

struct WatchedFile {
    watch: i32,
    file: OomGroupFile,
}

impl GroupKills {
    /// Returns when the agent stops.
    async fn keep(mut self) {
        let mut versions = self.pods.versions();
        loop {
            versions.borrow_and_update();
            self.follow().await;
            tokio::select! {
                changed = versions.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                readable = self.changes.readable() => {
                    if readable.is_err() {
                        return;
                    }
                    self.restore().await;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Watches the files of new containers, and those of ended ones no longer.
    async fn follow(&mut self) {
        let (now, entries) = self.pods.since(self.seen);
        self.seen = now;
        for (uid, _, entry) in entries {
            let running = running(&entry.status);
            let known = self.watched.entry(uid).or_default();
            known.retain(|id, watched| {
                let runs = running.contains(id);
                if !runs {
                    unwatch(&self.changes, watched.as_ref());
                }
                runs
            });
            let new: Vec<_> = running
                .into_iter()
                .filter(|id| !known.contains_key(id))
                .collect();
            if new.is_empty() {
                continue;
            }
            known.extend(new.iter().map(|id| (id.clone(), None)));
            let found = self.host.oom_groups(Arc::clone(&entry.pod), new).await;
            let mut files = Vec::new();
            for (id, file) in found {
                match file.watch(&self.changes) {
                    Ok(watch) => {
                        files.push(file.clone());
                        known.insert(id, Some(WatchedFile { watch, file }));
                    }
                    // The container has ended.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => {
                        info!(file = %file.path().display(), %error, "Cannot watch a cgroup");
                    }
                }
            }
            // It may have been changed before it was watched, or while no agent ran.
            self.host.enable_oom_groups(files).await;
        }
        // All pods of the board are known by now.
        if self.watched.len() > self.pods.len() {
            self.forget_removed();
        }
    }

    fn forget_removed(&mut self) {
        let (pods, changes) = (&self.pods, &self.changes);
        self.watched.retain(|uid, files| {
            let exists = pods.get(uid).is_some();
            if !exists {
                files
                    .values()
                    .for_each(|watched| unwatch(changes, watched.as_ref()));
            }
            exists
        });
    }

    /// Restores the files that were changed.
    async fn restore(&mut self) {
        let mut changed = BTreeSet::new();
        let drained = self.changes.drain(|event| {
            changed.insert(event.wd());
        });
        if let Err(error) = drained {
            info!(%error, "Cannot read which cgroups were changed");
        }
        let all = self.watched.values().flat_map(HashMap::values).flatten();
        let files = all.filter(|one| changed.contains(&one.watch));
        let files: Vec<_> = files.map(|one| one.file.clone()).collect();
        let restored = self.host.enable_oom_groups(files).await;
        if restored > 0 {
            // A container may bring this about each second.
            debug!(
                containers = restored,
                "memory.oom.group of containers was changed, and is 1 again"
            );
        }
    }
}

fn unwatch(changes: &Inotify, watched: Option<&WatchedFile>) {
    if let Some(watched) = watched {
        // The cgroup may be gone, and the watch with it.
        let _ = changes.remove_watch(watched.watch);
    }
}

fn running(status: &PodStatus) -> BTreeSet<ContainerId> {
    let running = status.running_containers();
    running
        .map(|status| ContainerId::from(&*status.container_id))
        .collect()
}
