//! Which pod is next. Pods with news wait in one line, the first that came is the first that goes;
//! of one pod there is at most one call under way, and what changes meanwhile makes one more. So
//! many calls are under way at the same time, and only one while the API server is away. Pure.

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

/// The line of pods.
#[derive(Debug)]
pub(super) struct Schedule {
    at_once: usize,
    running: usize,
    pods: HashMap<PodUid, Place>,
    line: VecDeque<PodUid>,
    timers: BTreeSet<(Instant, PodUid)>,
    away: Option<Away>,
}

/// Where a pod is.
#[derive(Debug)]
struct Place {
    queued: bool,
    running: bool,
    /// It changed while its call was under way.
    changed: bool,
    timer: Option<Instant>,
    backoff: Backoff,
}

#[derive(Debug)]
struct Away {
    backoff: Backoff,
    next: Instant,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Well, or there was nothing to do.
    Done,
    /// It failed; again later, and not before this time is over.
    Later(Option<Duration>),
    /// It will fail again as it is; again much later.
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
            line: VecDeque::new(),
            timers: BTreeSet::new(),
            away: None,
        }
    }

    /// There is news of a pod. It goes now, even if it was to wait: what it says is new.
    pub(super) fn changed(&mut self, uid: &PodUid) {
        let place = self.pods.entry(uid.clone()).or_insert_with(|| Place {
            queued: false,
            running: false,
            changed: false,
            timer: None,
            backoff: Backoff::new(RETRY_INITIAL, RETRY_MAX),
        });
        if let Some(at) = place.timer.take() {
            self.timers.remove(&(at, uid.clone()));
        }
        if place.running {
            place.changed = true;
        } else if !place.queued {
            place.queued = true;
            self.line.push_back(uid.clone());
        }
    }

    /// Looks at a pod again at this time, if not before.
    pub(super) fn look_again(&mut self, uid: &PodUid, at: Instant) {
        let Some(place) = self.pods.get_mut(uid) else {
            return;
        };
        if place.queued || place.running && place.changed {
            return;
        }
        if let Some(old) = place.timer {
            if old <= at {
                return;
            }
            self.timers.remove(&(old, uid.clone()));
        }
        place.timer = Some(at);
        self.timers.insert((at, uid.clone()));
    }

    /// The next pod, whose turn then lasts until [`Self::ended`].
    pub(super) fn next(&mut self, now: Instant) -> Option<PodUid> {
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, uid)) = self.timers.pop_first()
                && let Some(place) = self.pods.get_mut(&uid)
            {
                place.timer = None;
                if place.running {
                    place.changed = true;
                } else if !place.queued {
                    place.queued = true;
                    self.line.push_back(uid);
                }
            }
        }
        let may_run = match &self.away {
            None => self.running < self.at_once,
            Some(away) => self.running == 0 && away.next <= now,
        };
        if !may_run {
            return None;
        }
        let uid = self.line.pop_front()?;
        let place = self.pods.get_mut(&uid)?;
        place.queued = false;
        place.running = true;
        self.running += 1;
        Some(uid)
    }

    /// The turn of a pod is over.
    pub(super) fn ended(&mut self, uid: &PodUid, end: End, now: Instant) {
        let Some(place) = self.pods.get_mut(uid) else {
            return;
        };
        if !std::mem::take(&mut place.running) {
            return;
        }
        self.running -= 1;
        let mut again = std::mem::take(&mut place.changed);
        let mut wait = None;
        match end {
            End::Done => place.backoff.reset(),
            End::Later(least) => {
                wait = Some(place.backoff.advance().max(least.unwrap_or_default()));
            }
            End::Refused => wait = Some(place.backoff.advance().max(REFUSED)),
            End::Away => again = true,
        }
        if again {
            // News goes at once even after a failure, but not sooner than the API server asked.
            match end {
                End::Later(Some(least)) => wait = Some(least),
                _ => {
                    wait = None;
                    place.queued = true;
                    self.line.push_back(uid.clone());
                }
            }
        }
        if let Some(wait) = wait {
            self.look_again(uid, now + wait);
        }
        if end == End::Away {
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
        let away = self.away.get_or_insert_with(|| Away {
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
        let away = self.away.as_ref().filter(|_| self.running == 0);
        let away = away.filter(|_| !self.line.is_empty()).map(|one| one.next);
        timer.into_iter().chain(away).min()
    }

    /// True while the API server can't be reached.
    pub(super) fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// Forgets pods that are no more, unless a call of theirs is under way.
    pub(super) fn retain(&mut self, lives: impl Fn(&PodUid) -> bool) {
        self.pods.retain(|uid, place| place.running || lives(uid));
        let pods = &self.pods;
        self.line.retain(|uid| pods.contains_key(uid));
        self.timers.retain(|(_, uid)| pods.contains_key(uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(name: &str) -> PodUid {
        name.into()
    }

    fn drain(schedule: &mut Schedule, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| schedule.next(now))
            .map(|uid| uid.to_string())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn pods_go_in_the_order_of_their_news_and_each_once_at_a_time() {
        let now = Instant::now();
        let mut schedule = Schedule::new(2);
        for name in ["a", "b", "a", "c", "b"] {
            schedule.changed(&uid(name));
        }
        assert_eq!(drain(&mut schedule, now), ["a", "b"]);
        // News of a pod whose call is under way makes one more turn, behind those who wait.
        schedule.changed(&uid("a"));
        schedule.changed(&uid("a"));
        assert_eq!(drain(&mut schedule, now), [""; 0]);
        schedule.ended(&uid("a"), End::Done, now);
        assert_eq!(drain(&mut schedule, now), ["c"]);
        schedule.ended(&uid("b"), End::Done, now);
        schedule.ended(&uid("c"), End::Done, now);
        assert_eq!(drain(&mut schedule, now), ["a"]);
        schedule.ended(&uid("a"), End::Done, now);
        assert_eq!(
            (drain(&mut schedule, now), schedule.wake_at()),
            (vec![], None)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_fails_waits_longer_each_time_and_news_of_it_goes_at_once() {
        let mut now = Instant::now();
        let mut schedule = Schedule::new(4);
        schedule.changed(&uid("a"));
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(drain(&mut schedule, now), ["a"]);
            schedule.ended(&uid("a"), End::Later(None), now);
            let next = schedule.wake_at().unwrap();
            waits.push((next - now).as_millis());
            now = next;
        }
        assert_eq!(
            waits,
            [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]
        );

        assert_eq!(drain(&mut schedule, now), ["a"]);
        schedule.ended(&uid("a"), End::Refused, now);
        schedule.changed(&uid("a"));
        assert_eq!(drain(&mut schedule, now), ["a"]);
        let asked = Duration::from_secs(90);
        schedule.ended(&uid("a"), End::Later(Some(asked)), now);
        assert_eq!(schedule.wake_at(), Some(now + asked));
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_api_server_is_away_one_call_looks_for_it_and_then_all_go() {
        let mut now = Instant::now();
        let mut schedule = Schedule::new(3);
        for name in ["a", "b", "c", "d"] {
            schedule.changed(&uid(name));
        }
        for name in drain(&mut schedule, now) {
            schedule.ended(&uid(&name), End::Away, now);
        }
        assert!(schedule.is_away());
        let mut waits = Vec::new();
        for _ in 0..8 {
            let next = schedule.wake_at().unwrap();
            waits.push((next - now).as_millis());
            now = next;
            let tried = drain(&mut schedule, now);
            assert_eq!(tried.len(), 1);
            schedule.ended(&uid(&tried[0]), End::Away, now);
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        // Its watch is heard again: nobody waits for the timer.
        schedule.may_be_back(now);
        let tried = drain(&mut schedule, now);
        assert_eq!(tried.len(), 1);
        assert!(schedule.answered());
        schedule.ended(&uid(&tried[0]), End::Done, now);
        assert_eq!(drain(&mut schedule, now).len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_are_no_more_leave_nothing_behind() {
        let now = Instant::now();
        let mut schedule = Schedule::new(1);
        for name in ["a", "b", "c"] {
            schedule.changed(&uid(name));
        }
        assert_eq!(schedule.next(now), Some(uid("a")));
        schedule.ended(&uid("a"), End::Later(None), now);
        assert_eq!(schedule.next(now), Some(uid("b")));
        schedule.retain(|_| false);
        assert_eq!(schedule.wake_at(), None);
        schedule.ended(&uid("b"), End::Later(None), now);
        schedule.retain(|_| false);
        assert_eq!((schedule.next(now), schedule.wake_at()), (None, None));
    }
}
