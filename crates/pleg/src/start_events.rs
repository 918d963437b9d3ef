//! The start check: a container that this agent started must be reported by an event.
//!
//! An open stream without events looks like a node on which nothing happens. The agent's own starts
//! tell the two apart, and cost nothing: both runtimes send STARTED for each of them.

use std::{collections::HashMap, time::Duration};

use rubelet_base::ContainerId;
use tokio::time::Instant;

/// How long after the answer to StartContainer its event may come.
const LIMIT: Duration = Duration::from_secs(2);
/// After so many missing events in a row without any other sign of life, the events are not used.
const GIVE_UP: u32 = 3;

/// Starts that wait for their event.
#[derive(Debug, Default)]
pub(super) struct StartEvents {
    waiting: HashMap<ContainerId, StartEvent>,
    missed: u32,
}

#[derive(Debug, Clone, Copy)]
enum StartEvent {
    /// The call is under way.
    Called,
    /// The event came before the answer.
    Heard,
    /// The call has succeeded; the event is due then.
    Due(Instant),
}

/// What a missing event means for the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamVerdict {
    /// Make a new one.
    Renew,
    /// Do without, for now.
    Distrust,
}

impl StartEvents {
    /// StartContainer is about to be called.
    pub(super) fn called(&mut self, id: &ContainerId) {
        self.waiting.insert(id.clone(), StartEvent::Called);
    }

    /// It was answered. Returns true if an event is due now.
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

    /// STARTED came for this container; STOPPED or DELETED do as well.
    pub(super) fn heard(&mut self, id: &str) {
        match self.waiting.get_mut(id) {
            Some(start @ StartEvent::Called) => *start = StartEvent::Heard,
            Some(StartEvent::Due(_)) => {
                self.waiting.remove(id);
            }
            Some(StartEvent::Heard) => {}
            None => return,
        }
        self.missed = 0;
    }

    /// When the first missing event will be noticed.
    pub(super) fn next(&self) -> Option<Instant> {
        let due = |start: &StartEvent| match start {
            StartEvent::Due(at) => Some(*at),
            _ => None,
        };
        self.waiting.values().filter_map(due).min()
    }

    /// Whether an event is missing at this time.
    pub(super) fn check(&mut self, now: Instant) -> Option<StreamVerdict> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        // The other starts are forgotten with it: one broken stream counts once.
        self.forget();
        self.missed += 1;
        Some(if self.missed >= GIVE_UP {
            self.missed = 0;
            StreamVerdict::Distrust
        } else {
            StreamVerdict::Renew
        })
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A new stream does not repeat what an old one lost.
    pub(super) fn forget(&mut self) {
        self.waiting
            .retain(|_, start| matches!(start, StartEvent::Called));
        for start in self.waiting.values_mut() {
            // Its event may be the one that was lost.
            *start = StartEvent::Heard;
        }
    }
}

#[cfg(test)]
mod tests;
