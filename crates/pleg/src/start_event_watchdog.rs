//! Checks that the runtime sends an event for each container that this agent starts.
//!
//! An open stream that delivers no events looks like a node on which nothing happens. The agent's
//! own starts distinguish the two at no cost: containerd and CRI-O send STARTED for each of them.

use std::{collections::HashMap, time::Duration};

use rubelet_base::ContainerId;
use tokio::time::Instant;

/// Longest delay of the event after the response to StartContainer.
const LIMIT: Duration = Duration::from_secs(2);
/// Number of missing events in a row after which events are not used for a while.
const GIVE_UP: u32 = 3;

/// Container starts whose event has not arrived.
#[derive(Debug, Default)]
pub(super) struct StartEventWatchdog {
    waiting: HashMap<ContainerId, StartEvent>,
    missed: u32,
}

#[derive(Debug, Clone, Copy)]
enum StartEvent {
    /// The call is in progress.
    Called,
    /// The event came before the response.
    Received,
    /// The call has succeeded; the event must arrive until then.
    Due(Instant),
}

/// Reaction to a missing event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamAction {
    /// Open the stream again.
    Reconnect,
    /// Relist without events for a while.
    FallBackToPolling,
}

impl StartEventWatchdog {
    /// Records that StartContainer is about to be called.
    pub(super) fn called(&mut self, id: &ContainerId) {
        self.waiting.insert(id.clone(), StartEvent::Called);
    }

    /// Records the response. Returns true if an event is due now.
    pub(super) fn answered(&mut self, id: &ContainerId, started: bool, now: Instant) -> bool {
        match self.waiting.get_mut(id) {
            Some(start @ StartEvent::Called) if started => {
                *start = StartEvent::Due(now + LIMIT);
                true
            }
            _ => {
                self.waiting.remove(id);
                false
            }
        }
    }

    /// Records that STARTED came for this container; STOPPED and DELETED count as well.
    pub(super) fn event_received(&mut self, id: &str) {
        match self.waiting.get_mut(id) {
            Some(start @ StartEvent::Called) => *start = StartEvent::Received,
            Some(StartEvent::Due(_)) => {
                self.waiting.remove(id);
            }
            Some(StartEvent::Received) => {}
            None => return,
        }
        self.missed = 0;
    }

    /// Time at which the first event counts as missing.
    pub(super) fn next(&self) -> Option<Instant> {
        let due = |start: &StartEvent| match start {
            StartEvent::Due(at) => Some(*at),
            _ => None,
        };
        self.waiting.values().filter_map(due).min()
    }

    /// Returns what to do if an event is missing at this time.
    pub(super) fn check(&mut self, now: Instant) -> Option<StreamAction> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        // Drops the other starts as well: one broken stream counts once.
        self.forget();
        self.missed += 1;
        Some(if self.missed >= GIVE_UP {
            self.missed = 0;
            StreamAction::FallBackToPolling
        } else {
            StreamAction::Reconnect
        })
    }

    /// Number of kept starts.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Drops all expected events: a new stream does not repeat events that the old one lost.
    pub(super) fn forget(&mut self) {
        self.waiting
            .retain(|_, start| matches!(start, StartEvent::Called));
        for start in self.waiting.values_mut() {
            // Its event may be the one that was lost.
            *start = StartEvent::Received;
        }
    }
}

#[cfg(test)]
mod tests;
