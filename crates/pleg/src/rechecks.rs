//! States that change without an event, and the times at which they are read again.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::{ContainerId, SandboxId};
use rubelet_pod_plan::{ContainerPhase, ObservedPod};
use tokio::time::Instant;

/// Rechecks of a sandbox that an event reported as deleted: runtimes send that event before they
/// remove the sandbox.
const DELETED: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
];
/// Recheck of a container that was created: it should be started soon.
const CREATED: Duration = Duration::from_secs(1);
/// First and longest wait for the address of a sandbox that is ready.
const ADDRESS: Duration = Duration::from_millis(200);
const ADDRESS_MAX: Duration = Duration::from_secs(10);
/// Recheck of an exited container that is reported as running again, before that is believed.
const REVIVED: Duration = Duration::from_millis(100);

/// The states of one pod that are read again without an event.
#[derive(Debug, Default)]
pub(super) struct Rechecks {
    /// Sandboxes that an event reported as deleted, with the time of the event.
    deleted: BTreeMap<SandboxId, Instant>,
    /// Containers that are created and not started, with the time of the first observation.
    created: BTreeMap<ContainerId, Instant>,
    /// Number of inspections that found no address of the sandbox.
    addressless: u32,
    /// Exited containers that are reported as running again, with the time of the first report.
    revived: BTreeMap<ContainerId, Instant>,
}

impl Rechecks {
    /// Records an event which reported that this sandbox is deleted.
    pub(super) fn sandbox_deleted(&mut self, id: &SandboxId, now: Instant) {
        self.deleted.entry(id.clone()).or_insert(now);
    }

    /// Number of kept entries.
    pub(super) fn len(&self) -> usize {
        self.deleted.len() + self.created.len() + self.revived.len()
    }

    /// True if the record of this sandbox is not final, although the sandbox is not ready.
    pub(super) fn rereads_sandbox(&self, id: &SandboxId) -> bool {
        self.deleted.contains_key(id)
    }

    /// True if the record of this container is not final, although the container has exited.
    pub(super) fn rereads_container(&self, id: &ContainerId) -> bool {
        self.revived.contains_key(id)
    }

    /// Keeps the old state of an exited container that is reported as running again, which is
    /// impossible. A runtime that reports it twice is believed.
    pub(super) fn hold_back(&mut self, old: &ObservedPod, new: &mut ObservedPod, now: Instant) {
        let known = std::mem::take(&mut self.revived);
        for found in &mut new.containers {
            if found.phase.exit().is_some() {
                continue;
            }
            let before = old.containers.iter().find(|before| before.id == found.id);
            let Some(before) = before.filter(|before| before.phase.exit().is_some()) else {
                continue;
            };
            let since = known.get(&found.id).copied().unwrap_or(now);
            if now < since + REVIVED {
                self.revived.insert(found.id.clone(), since);
                *found = before.clone();
            }
        }
    }

    /// Records the states of an observation; returns the time of the next inspection, if one is
    /// needed.
    pub(super) fn note(&mut self, pod: &ObservedPod, now: Instant) -> Option<Instant> {
        let mut soonest: Option<Instant> = None;
        let mut at = |time: Instant| soonest = Some(soonest.map_or(time, |old| old.min(time)));

        let known = |id: &SandboxId| pod.sandboxes.iter().any(|sandbox| sandbox.id == *id);
        self.deleted
            .retain(|id, since| known(id) && now < *since + DELETED[2]);
        for since in self.deleted.values() {
            let due = DELETED.iter().map(|after| *since + *after);
            due.filter(|due| *due > now).take(1).for_each(&mut at);
        }

        let seen = std::mem::take(&mut self.created);
        for found in &pod.containers {
            if found.phase == ContainerPhase::Created {
                let since = seen.get(&found.id).copied().unwrap_or(now);
                // One recheck only: the entry stays, so that there is no second one. An event or a
                // relist reports a later start.
                if now < since + CREATED {
                    at(since + CREATED);
                }
                self.created.insert(found.id.clone(), since);
            }
        }

        let lacks_address = pod.sandboxes.first().is_some_and(|sandbox| {
            sandbox.ready && !sandbox.host_network && sandbox.ips.is_empty()
        });
        if lacks_address {
            let wait = ADDRESS.saturating_mul(1 << self.addressless.min(8));
            self.addressless = self.addressless.saturating_add(1);
            at(now + wait.min(ADDRESS_MAX));
        } else {
            self.addressless = 0;
        }

        for since in self.revived.values() {
            at(*since + REVIVED);
        }
        soonest
    }
}
