//! Queue of pod statuses to send. Changed pods wait in one queue, first in, first out. Each pod has
//! at most one call in flight; a change during the call queues the pod again. The number of calls
//! in flight is limited, and is one while the API server is unreachable. Pure.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use rubelet_base::{Backoff, PodUid};
use tokio::time::Instant;

/// Waits after calls that failed for one pod.
const RETRY_INITIAL: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// First wait after a refusal that the same content will meet again.
const REFUSED: Duration = Duration::from_secs(10);
/// Waits between two tries to reach an API server that is away.
const AWAY_INITIAL: Duration = Duration::from_millis(100);
const AWAY_MAX: Duration = Duration::from_secs(5);

/// The queue of pods.
#[derive(Debug)]
pub(super) struct Schedule {
    at_once: usize,
    running: usize,
    pods: HashMap<PodUid, QueuedPod>,
    queue: VecDeque<PodUid>,
    timers: BTreeSet<(Instant, PodUid)>,
    away: Option<Outage>,
}

/// The state of a pod in the queue.
#[derive(Debug)]
struct QueuedPod {
    queued: bool,
    running: bool,
    /// It changed while its call was under way.
    changed: bool,
    timer: Option<Instant>,
    backoff: Backoff,
}

#[derive(Debug)]
struct Outage {
    backoff: Backoff,
    next: Instant,
}

/// The end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// Well, or there was nothing to do.
    Done,
    /// It failed; again later, and not before this time has passed.
    Later(Option<Duration>),
    /// It fails again with the same content; retry much later.
    Refused,
    /// The API server was not reached.
    Away,
}

impl Schedule {
    pub(super) fn new(at_once: usize) -> Self {
        Self {
            at_once: at_once.max(1),
            running: 0,
            pods: HashMap::new(),
            queue: VecDeque::new(),
            timers: BTreeSet::new(),
            away: None,
        }
    }

    /// A pod has changed. It is sent now, even if it was waiting: the status is new.
    pub(super) fn changed(&mut self, uid: &PodUid) {
        let pod = self.pods.entry(uid.clone()).or_insert_with(|| QueuedPod {
            queued: false,
            running: false,
            changed: false,
            timer: None,
            backoff: Backoff::new(RETRY_INITIAL, RETRY_MAX),
        });
        if let Some(at) = pod.timer.take() {
            self.timers.remove(&(at, uid.clone()));
        }
        if pod.running {
            pod.changed = true;
        } else if !pod.queued {
            pod.queued = true;
            self.queue.push_back(uid.clone());
        }
    }

    /// Looks at a pod again at this time, if not before.
    pub(super) fn look_again(&mut self, uid: &PodUid, at: Instant) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        // Its turn comes earlier.
        if pod.queued || pod.running && pod.changed {
            return;
        }
        if let Some(old) = pod.timer {
            if old <= at {
                return;
            }
            self.timers.remove(&(old, uid.clone()));
        }
        pod.timer = Some(at);
        self.timers.insert((at, uid.clone()));
    }

    /// The next pod, whose call then lasts until [`Self::ended`].
    pub(super) fn next(&mut self, now: Instant) -> Option<PodUid> {
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, uid)) = self.timers.pop_first()
                && let Some(pod) = self.pods.get_mut(&uid)
            {
                pod.timer = None;
                if pod.running {
                    pod.changed = true;
                } else if !pod.queued {
                    pod.queued = true;
                    self.queue.push_back(uid);
                }
            }
        }
        // While the API server is away, one call at a time tries whether it is back.
        let may_run = match &self.away {
            None => self.running < self.at_once,
            Some(away) => self.running == 0 && away.next <= now,
        };
        if !may_run {
            return None;
        }
        let uid = self.queue.pop_front()?;
        let pod = self.pods.get_mut(&uid)?;
        pod.queued = false;
        pod.running = true;
        self.running += 1;
        Some(uid)
    }

    /// The call of a pod has ended.
    pub(super) fn ended(&mut self, uid: &PodUid, end: CallOutcome, now: Instant) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        if !std::mem::take(&mut pod.running) {
            return;
        }
        self.running -= 1;
        let mut again = std::mem::take(&mut pod.changed);
        let mut wait = None;
        match end {
            CallOutcome::Done => pod.backoff.reset(),
            CallOutcome::Later(least) => {
                wait = Some(pod.backoff.advance().max(least.unwrap_or_default()));
            }
            CallOutcome::Refused => wait = Some(pod.backoff.advance().max(REFUSED)),
            // Without a wait of its own: the outage paces the calls of all pods.
            CallOutcome::Away => again = true,
        }
        if again {
            // Changes are sent at once even after a failure, but not sooner than the API server's
            // `Retry-After`.
            match end {
                CallOutcome::Later(Some(least)) => wait = Some(least),
                _ => {
                    wait = None;
                    pod.queued = true;
                    self.queue.push_back(uid.clone());
                }
            }
        }
        if let Some(wait) = wait {
            self.look_again(uid, now + wait);
        }
        if end == CallOutcome::Away {
            self.note_away(now);
        }
    }

    /// A call was answered, whatever the answer. True if the API server had been away.
    pub(super) fn answered(&mut self) -> bool {
        self.away.take().is_some()
    }

    /// The API server may be back: the next call need not wait.
    pub(super) fn may_be_back(&mut self, now: Instant) {
        if let Some(away) = &mut self.away {
            away.next = now;
        }
    }

    fn note_away(&mut self, now: Instant) {
        let away = self.away.get_or_insert_with(|| Outage {
            backoff: Backoff::new(AWAY_INITIAL, AWAY_MAX),
            next: now,
        });
        // Calls that were under way together fail together, and count once.
        if away.next <= now {
            away.next = now + away.backoff.advance();
        }
    }

    /// When [`Self::next`] may have something without any news.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        // While a call is in flight, its end wakes the task.
        let away = self.away.as_ref().filter(|_| self.running == 0);
        let away = away.filter(|_| !self.queue.is_empty()).map(|one| one.next);
        timer.into_iter().chain(away).min()
    }

    /// True while the API server can't be reached.
    pub(super) fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// Forgets pods that no longer exist, unless a call of theirs is in progress.
    pub(super) fn retain(&mut self, lives: impl Fn(&PodUid) -> bool) {
        self.pods.retain(|uid, pod| pod.running || lives(uid));
        let pods = &self.pods;
        self.queue.retain(|uid| pods.contains_key(uid));
        self.timers.retain(|(_, uid)| pods.contains_key(uid));
    }
}

#[cfg(test)]
mod tests;
