//! Queries on processes: the real state, to compare with a caller's view.

use std::{collections::BTreeSet, time::Duration};

use super::{EntryKind, Instance, Oracle};

/// A command that was run in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRecord {
    /// The container.
    pub id: String,
    /// The command, joined by spaces.
    pub command: String,
    /// When it began, since the model started.
    pub began: Duration,
    /// Its end and exit code, which is `None` if it was killed; `None` while it runs.
    pub ended: Option<(Duration, Option<i32>)>,
}

impl Oracle {
    /// Number of starts of containers of this pod and name.
    #[must_use]
    pub fn starts(&self, pod_uid: &str, name: &str) -> usize {
        let whats = self.entries().iter().map(|entry| &entry.what);
        let started = whats.filter(
            |what| matches!(what, EntryKind::ContainerStarted(of) if is(of, pod_uid, name)),
        );
        started.count()
    }

    /// Exit codes and reasons of this pod's containers of this name, in the order of their exits.
    #[must_use]
    pub fn exits(&self, pod_uid: &str, name: &str) -> Vec<(i32, &str)> {
        let whats = self.entries().iter().map(|entry| &entry.what);
        let exits = whats.filter_map(|what| match what {
            EntryKind::ContainerExited {
                instance,
                code,
                reason,
            } if is(instance, pod_uid, name) => Some((*code, reason.as_str())),
            _ => None,
        });
        exits.collect()
    }

    /// The commands that were run in this pod's containers of this name, in the order in which they
    /// began.
    #[must_use]
    pub fn execs(&self, pod_uid: &str, name: &str) -> Vec<ExecRecord> {
        let mut execs: Vec<ExecRecord> = Vec::new();
        for entry in self.entries() {
            match &entry.what {
                EntryKind::ExecBegan { instance, command } if is(instance, pod_uid, name) => {
                    execs.push(ExecRecord {
                        id: instance.id.clone(),
                        command: command.join(" "),
                        began: entry.at,
                        ended: None,
                    });
                }
                EntryKind::ExecEnded {
                    instance,
                    command,
                    code,
                } if is(instance, pod_uid, name) => {
                    let command = command.join(" ");
                    let under_way = execs.iter_mut().find(|exec| {
                        exec.id == instance.id && exec.command == command && exec.ended.is_none()
                    });
                    if let Some(exec) = under_way {
                        exec.ended = Some((entry.at, *code));
                    }
                }
                _ => {}
            }
        }
        execs
    }

    /// Number of containers of this pod and name that run at the end of the record.
    #[must_use]
    pub fn live_instances(&self, pod_uid: &str, name: &str) -> usize {
        self.running(pod_uid, name).last().unwrap_or(0)
    }

    /// Maximum number of containers of this pod and name that ran at the same time.
    #[must_use]
    pub fn max_simultaneous(&self, pod_uid: &str, name: &str) -> usize {
        self.running(pod_uid, name).max().unwrap_or(0)
    }

    /// Maximum number of sandboxes of this pod that were ready at the same time.
    #[must_use]
    pub fn max_ready_sandboxes(&self, pod_uid: &str) -> usize {
        let mut ready = BTreeSet::new();
        let mut most = 0;
        for entry in self.entries() {
            match &entry.what {
                EntryKind::SandboxReady {
                    id, pod_uid: of, ..
                } if of == pod_uid => {
                    ready.insert(id);
                }
                EntryKind::SandboxStopped { id, .. } | EntryKind::SandboxRemoved { id, .. } => {
                    ready.remove(id);
                }
                _ => {}
            }
            most = most.max(ready.len());
        }
        most
    }

    /// The number of running containers after each entry.
    fn running(&self, pod_uid: &str, name: &str) -> impl Iterator<Item = usize> {
        let mut running = BTreeSet::new();
        self.entries().iter().map(move |entry| {
            match &entry.what {
                EntryKind::ContainerStarted(of) if is(of, pod_uid, name) => {
                    running.insert(of.id.as_str());
                }
                EntryKind::ContainerExited { instance, .. } => {
                    running.remove(instance.id.as_str());
                }
                _ => {}
            }
            running.len()
        })
    }
}

fn is(instance: &Instance, pod_uid: &str, name: &str) -> bool {
    instance.pod_uid == pod_uid && instance.name == name
}
