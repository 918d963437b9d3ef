//! Tests of what the pod table decides.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use rubelet_api::pod::{Deletion, Pod};
use rubelet_base::{PodName, PodUid};
use rubelet_pleg::RuntimePod;

use super::{
    decide::{TableAction, TableSnapshot, TaskView, decide},
    orphan,
};

/// A pod `NAME` with the UID `NAME/VERSION`.
fn runtime_pod(uid: &str) -> RuntimePod {
    let (name, _) = uid.split_once('/').expect("a name and a version");
    RuntimePod {
        uid: uid.into(),
        name: PodName::new("default", name),
        grace: Some(Duration::from_secs(7)),
        source: None,
    }
}

fn pod(uid: &str) -> Arc<Pod> {
    Arc::new(orphan::pod_of(&runtime_pod(uid), "n"))
}

/// What a task was last told to do.
#[derive(Clone, Copy, PartialEq)]
enum LastOrder {
    Run,
    /// Runs another version than the desired one.
    RunOther,
    Remove,
}

#[derive(Default)]
struct Table {
    desired: &'static [&'static str],
    waiting: bool,
    tasks: &'static [(&'static str, LastOrder)],
    runtime: &'static [&'static str],
    on_disk: &'static [&'static str],
    backing_off: &'static [&'static str],
    finished: &'static [&'static str],
    /// Pods deleted in the API, with their grace periods in seconds.
    deleted: &'static [(&'static str, u64)],
}

impl Table {
    /// The actions, abbreviated: `spawn a/1`, `update a/1`, `remove a/1 7s`,
    /// `spawn-removal a/1 7s`, `orphan a/1`, `leftover a/1`.
    fn decide(&self) -> Vec<String> {
        let desired: BTreeMap<PodUid, _> = self
            .desired
            .iter()
            .map(|uid| (PodUid::from(*uid), self.desired_pod(uid)))
            .collect();
        let view = |(uid, order): &(&str, LastOrder)| {
            let running = match order {
                LastOrder::Run => Some(desired.get(*uid).cloned().unwrap_or_else(|| pod(uid))),
                LastOrder::RunOther => Some(pod(uid)),
                LastOrder::Remove => None,
            };
            (
                PodUid::from(*uid),
                TaskView {
                    name: runtime_pod(uid).name,
                    running,
                    grace: Duration::from_secs(7),
                },
            )
        };
        let set = |uids: &[&str]| -> BTreeSet<PodUid> {
            uids.iter().map(|uid| PodUid::from(*uid)).collect()
        };
        let runtime: Vec<_> = self.runtime.iter().map(|uid| runtime_pod(uid)).collect();
        let actions = decide(&TableSnapshot {
            desired: &desired,
            all_ready: !self.waiting,
            tasks: &self.tasks.iter().map(view).collect(),
            runtime: &runtime,
            on_disk: &set(self.on_disk),
            backing_off: &set(self.backing_off),
            finished: &set(self.finished),
        });
        let short = |action: TableAction| match action {
            TableAction::Spawn(pod) => format!("spawn {}", pod.uid),
            TableAction::Update(pod) => format!("update {}", pod.uid),
            TableAction::Remove { uid, grace, .. } => format!("remove {uid} {grace:?}"),
            TableAction::SpawnRemoval(pod, grace) => {
                format!("spawn-removal {} {grace:?}", pod.uid)
            }
            TableAction::RemoveOrphan(pod) => format!("orphan {}", pod.uid),
            TableAction::RemoveLeftover(uid) => format!("leftover {uid}"),
        };
        actions.into_iter().map(short).collect()
    }

    fn desired_pod(&self, uid: &str) -> Arc<Pod> {
        let grace = self.deleted.iter().find(|(of, _)| *of == uid);
        let deletion = grace.map(|(_, grace)| Deletion {
            at: Timestamp::UNIX_EPOCH,
            grace: Duration::from_secs(*grace),
        });
        Arc::new(Pod {
            deletion,
            ..Pod::clone(&pod(uid))
        })
    }
}

#[test]
fn a_pod_deleted_in_the_api_is_removed_once_within_its_grace() {
    use LastOrder::*;
    let of = |tasks, seconds: &'static [(&'static str, u64)]| Table {
        desired: &["a/1"],
        tasks,
        deleted: seconds,
        ..Table::default()
    };
    let rows: [(&str, Table, &[&str]); 7] = [
        (
            "runs",
            of(&[("a/1", Run)], &[("a/1", 9)]),
            &["remove a/1 9s"],
        ),
        (
            "a grace of zero becomes one second",
            of(&[("a/1", Run)], &[("a/1", 0)]),
            &["remove a/1 1s"],
        ),
        ("goes already", of(&[("a/1", Remove)], &[("a/1", 7)]), &[]),
        (
            "is being removed, with a shorter grace",
            of(&[("a/1", Remove)], &[("a/1", 3)]),
            &["remove a/1 3s"],
        ),
        (
            "is being removed, with a longer grace",
            of(&[("a/1", Remove)], &[("a/1", 60)]),
            &[],
        ),
        (
            "has no task, or had one in the previous agent",
            of(&[], &[("a/1", 30)]),
            &["spawn-removal a/1 30s"],
        ),
        (
            "was removed",
            Table {
                finished: &["a/1"],
                ..of(&[], &[("a/1", 30)])
            },
            &[],
        ),
    ];
    for (name, table, actions) in rows {
        assert_eq!(table.decide(), actions, "{name}");
    }
}

#[test]
fn tasks_follow_the_desired_pods() {
    use LastOrder::*;
    let rows: [(&str, Table, &[&str]); 7] = [
        ("nothing", Table::default(), &[]),
        (
            "new",
            Table {
                desired: &["a/1", "b/1"],
                ..Table::default()
            },
            &["spawn a/1", "spawn b/1"],
        ),
        (
            "adopted",
            Table {
                desired: &["a/1"],
                runtime: &["a/1"],
                on_disk: &["a/1"],
                ..Table::default()
            },
            &["spawn a/1"],
        ),
        (
            "is unchanged",
            Table {
                desired: &["a/1"],
                tasks: &[("a/1", Run)],
                runtime: &["a/1"],
                ..Table::default()
            },
            &[],
        ),
        (
            "edited",
            Table {
                desired: &["a/1"],
                tasks: &[("a/1", RunOther)],
                ..Table::default()
            },
            &["update a/1"],
        ),
        (
            "gone",
            Table {
                tasks: &[("a/1", Run)],
                runtime: &["a/1"],
                ..Table::default()
            },
            &["remove a/1 7s"],
        ),
        // A source listed it before, so it is known to be deleted.
        (
            "removed while another source is not read yet",
            Table {
                waiting: true,
                tasks: &[("a/1", Run)],
                ..Table::default()
            },
            &["remove a/1 7s"],
        ),
    ];
    for (name, table, expected) in rows {
        assert_eq!(table.decide(), expected, "{name}");
    }
}

#[test]
fn a_pod_waits_until_the_one_before_it_is_removed() {
    use LastOrder::*;
    let rows: [(&str, Table, &[&str]); 5] = [
        (
            "being removed",
            Table {
                tasks: &[("a/1", Remove)],
                runtime: &["a/1"],
                on_disk: &["a/1"],
                ..Table::default()
            },
            &[],
        ),
        (
            "desired again while it is removed",
            Table {
                desired: &["a/1"],
                tasks: &[("a/1", Remove)],
                ..Table::default()
            },
            &[],
        ),
        (
            "another UID while the old one runs",
            Table {
                desired: &["a/2"],
                tasks: &[("a/1", Run)],
                ..Table::default()
            },
            &["remove a/1 7s"],
        ),
        (
            "another UID while the old one is removed",
            Table {
                desired: &["a/2", "b/1"],
                tasks: &[("a/1", Remove)],
                ..Table::default()
            },
            &["spawn b/1"],
        ),
        (
            "another UID while the old one is in the runtime only",
            Table {
                desired: &["a/2", "b/1"],
                runtime: &["a/1"],
                ..Table::default()
            },
            &["spawn b/1", "orphan a/1"],
        ),
    ];
    for (name, table, expected) in rows {
        assert_eq!(table.decide(), expected, "{name}");
    }
}

#[test]
fn unknown_pods_are_removed_only_when_all_sources_are_ready() {
    let rows: [(bool, &[&str]); 2] = [(true, &[]), (false, &["orphan a/1", "leftover b/1"])];
    for (waiting, expected) in rows {
        let table = Table {
            waiting,
            runtime: &["a/1"],
            on_disk: &["a/1", "b/1"],
            ..Table::default()
        };
        assert_eq!(table.decide(), expected, "waiting: {waiting}");
    }
}

#[test]
fn a_pod_whose_task_panicked_is_left_alone_during_its_back_off() {
    let table = Table {
        desired: &["a/1", "b/1"],
        runtime: &["a/1"],
        on_disk: &["a/1"],
        backing_off: &["a/1"],
        ..Table::default()
    };
    assert_eq!(table.decide(), ["spawn b/1"]);
    let unwanted = Table {
        desired: &[],
        ..table
    };
    assert_eq!(unwanted.decide(), [""; 0]);
    let rested = Table {
        backing_off: &[],
        ..unwanted
    };
    assert_eq!(rested.decide(), ["orphan a/1"]);
}
