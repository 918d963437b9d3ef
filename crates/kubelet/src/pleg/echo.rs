//! The echo check: a container that this agent started must be told of by an event.
//!
//! A stream that is open and silent looks like a node on which nothing happens. The agent's own
//! starts tell the two apart, and cost nothing: both runtimes send STARTED for each of them.

use std::{collections::HashMap, time::Duration};

use rubelet_base::ContainerId;
use tokio::time::Instant;

/// How long after the answer to StartContainer its event may come.
const LIMIT: Duration = Duration::from_secs(2);
/// After so many missing events in a row without any other sign of life, the events are not used.
const GIVE_UP: u32 = 3;

/// Starts that wait for their event.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    waiting: HashMap<ContainerId, Echo>,
    missed: u32,
}

#[derive(Debug, Clone, Copy)]
enum Echo {
    /// The call is under way.
    Called,
    /// The event came before the answer.
    Heard,
    /// The call has succeeded; the event is due then.
    Due(Instant),
}

/// What a missing event says of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Make a new one.
    Renew,
    /// Do without, for now.
    Distrust,
}

impl Echoes {
    /// StartContainer is about to be called.
    pub(super) fn called(&mut self, id: &ContainerId) {
        self.waiting.insert(id.clone(), Echo::Called);
    }

    /// It was answered. Returns true if an event is due now.
    pub(super) fn answered(&mut self, id: &ContainerId, started: bool, now: Instant) -> bool {
        match self.waiting.get_mut(id) {
            Some(echo @ Echo::Called) if started => {
                *echo = Echo::Due(now + LIMIT);
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
            Some(echo @ Echo::Called) => *echo = Echo::Heard,
            Some(Echo::Due(_)) => {
                self.waiting.remove(id);
            }
            Some(Echo::Heard) => {}
            None => return,
        }
        self.missed = 0;
    }

    /// When the first missing event will be noticed.
    pub(super) fn next(&self) -> Option<Instant> {
        let due = |echo: &Echo| match echo {
            Echo::Due(at) => Some(*at),
            _ => None,
        };
        self.waiting.values().filter_map(due).min()
    }

    /// Whether an event is missing at this time.
    pub(super) fn check(&mut self, now: Instant) -> Option<Verdict> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        self.forget();
        self.missed += 1;
        Some(if self.missed >= GIVE_UP {
            self.missed = 0;
            Verdict::Distrust
        } else {
            Verdict::Renew
        })
    }

    /// How many are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A new stream does not tell what an old one lost.
    pub(super) fn forget(&mut self) {
        self.waiting.retain(|_, echo| matches!(echo, Echo::Called));
        for echo in self.waiting.values_mut() {
            // Its event may be the one that was lost.
            *echo = Echo::Heard;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_come_before_or_after_the_answer() {
        let now = Instant::now();
        let (early, late) = (ContainerId::from("early"), ContainerId::from("late"));
        let mut echoes = Echoes::default();
        echoes.called(&early);
        echoes.called(&late);
        echoes.heard("early");
        assert!(!echoes.answered(&early, true, now), "it has come");
        assert!(echoes.answered(&late, true, now));
        assert_eq!(echoes.check(now + LIMIT / 2), None);
        echoes.heard("late");
        assert_eq!(echoes.next(), None);
        assert_eq!(echoes.check(now + LIMIT), None);
    }

    #[test]
    fn a_failed_start_has_no_event() {
        let mut echoes = Echoes::default();
        let id = ContainerId::from("a");
        echoes.called(&id);
        assert!(!echoes.answered(&id, false, Instant::now()));
        assert_eq!(echoes.next(), None);
    }

    #[test]
    fn missing_events_renew_the_stream_and_the_third_in_a_row_ends_the_trust() {
        let mut now = Instant::now();
        let mut echoes = Echoes::default();
        let mut miss = |echoes: &mut Echoes| {
            let id = ContainerId::from("a");
            echoes.called(&id);
            echoes.answered(&id, true, now);
            now += LIMIT;
            echoes.check(now)
        };
        assert_eq!(miss(&mut echoes), Some(Verdict::Renew));
        assert_eq!(miss(&mut echoes), Some(Verdict::Renew));
        assert_eq!(miss(&mut echoes), Some(Verdict::Distrust));
        assert_eq!(miss(&mut echoes), Some(Verdict::Renew));
        echoes.called(&ContainerId::from("b"));
        echoes.heard("b");
        assert_eq!(miss(&mut echoes), Some(Verdict::Renew));
        assert_eq!(
            miss(&mut echoes),
            Some(Verdict::Renew),
            "an event between them counts"
        );
    }
}
