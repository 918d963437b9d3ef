//! When pods with limits are measured.
//!
//! To add up the files of a pod is expensive, to ask a file system for its free space is not. So the free
//! space is read often, and a pod is measured when so much of it is gone that the pod may have crossed a
//! limit, when it will have at the rate at which it grows, and from time to time.

use std::{collections::BTreeMap, time::Duration};

use rubelet_api::resources::Bytes;
use rubelet_base::PodUid;

/// Longest time between two measurements of a pod: it may write what others free meanwhile.
const LONGEST: Duration = Duration::from_secs(60);
/// Time to a second measurement of a pod after one because of lost space: some runtimes renew the sizes of
/// writable layers only each 10 s.
const SECOND_LOOK: Duration = Duration::from_secs(11);
/// Shortest time between two measurements of a pod, and between two looks at the free space while it falls.
const SHORTEST: Duration = Duration::from_millis(200);
/// A pod is left alone for this many times as long as measuring it took.
const REST: u32 = 10;
/// Shortest and longest time between two looks at the free space.
const LOOKS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// Bytes in a second that a fast disk can write.
const DISK_SPEED: u64 = 2 << 30;
/// A pod may cross a limit by this much unnoticed, until the next of its measurements.
const INSIGNIFICANT: Bytes = 8 << 20;

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageMeasurement {
    /// What the pod can write before it crosses a limit.
    pub headroom: Bytes,
    /// How long measuring it took.
    pub took: Duration,
}

/// What is known of a pod.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeasuredPod {
    at: Duration,
    last: StorageMeasurement,
    /// Bytes in a second by which it grew between its last two measurements.
    rate: f64,
    /// The free space at that time.
    free: Option<Bytes>,
    /// The time of the next measurement if no space is lost.
    due: Duration,
}

impl MeasuredPod {
    /// The loss of free space after which the pod may have crossed a limit, or soon will.
    fn significant(&self) -> Bytes {
        (self.last.headroom / 2).max(INSIGNIFICANT)
    }

    /// What can be lost before that; `None` if it is not known.
    fn left(&self, free: Option<Bytes>) -> Option<Bytes> {
        let lost = self.free?.saturating_sub(free?);
        Some(self.significant().saturating_sub(lost))
    }

    fn rested(&self) -> Duration {
        self.at + SHORTEST.max(self.last.took * REST)
    }

    /// When the pod is measured if the free space is `free` and stays so.
    fn due(&self, free: Option<Bytes>) -> Duration {
        match self.left(free) {
            Some(0) => self.rested().min(self.due),
            Some(_) => self.due,
            // A file system that does not respond.
            None => self.due.min(self.rested().max(self.at + SECOND_LOOK)),
        }
    }
}

/// The times of measurements. All times count from any fixed moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StorageSchedule {
    pods: BTreeMap<PodUid, MeasuredPod>,
    /// The last look at the free space, and the bytes in a second that were lost before it.
    free: Option<(Duration, Bytes)>,
    loss: f64,
}

impl StorageSchedule {
    /// Forgets all pods but these.
    pub fn retain(&mut self, mut keeps: impl FnMut(&PodUid) -> bool) {
        self.pods.retain(|uid, _| keeps(uid));
    }

    /// Takes the free space of the disks; `None` if it is unknown.
    pub fn looked(&mut self, free: Option<Bytes>, now: Duration) {
        self.loss = match (self.free, free) {
            (Some((at, before)), Some(free)) => rate(before.saturating_sub(free), now - at),
            _ => 0.0,
        };
        self.free = free.map(|free| (now, free));
    }

    /// True if the pod is to be measured now.
    #[must_use]
    pub fn is_due(&self, uid: &PodUid, now: Duration) -> bool {
        let known = self.pods.get(uid);
        known.is_none_or(|pod| pod.due(self.free()) <= now)
    }

    /// Takes the measurement of a pod.
    pub fn measured(&mut self, uid: &PodUid, last: StorageMeasurement, now: Duration) {
        let free = self.free();
        let known = self.pods.get(uid);
        let rate = known.map_or(0.0, |pod| {
            let grown = pod.last.headroom.saturating_sub(last.headroom);
            rate(grown, now - pod.at)
        });
        let has_lost_space = known.is_some_and(|pod| pod.left(free) == Some(0));
        let mut pod = MeasuredPod {
            at: now,
            last,
            rate,
            free,
            due: now,
        };
        let mut wait = LONGEST;
        if has_lost_space {
            wait = wait.min(SECOND_LOOK);
        }
        if let Some(until_full) = time(last.headroom, pod.rate) {
            wait = wait.min(until_full / 2);
        }
        pod.due = pod.rested().max(now + wait);
        self.pods.insert(uid.clone(), pod);
    }

    /// The time until the next look at the free space, or until a pod is to be measured.
    #[must_use]
    pub fn next(&self, now: Duration) -> Duration {
        let free = self.free();
        let next = self.pods.values().map(|pod| {
            let due = pod.due(free).saturating_sub(now);
            let Some(left) = pod.left(free) else {
                return due.min(LOOKS.1);
            };
            let at_full_speed = to_f64(left) / to_f64(DISK_SPEED);
            let look = Duration::from_secs_f64(at_full_speed).clamp(LOOKS.0, LOOKS.1);
            // A pod that must rest is measured when it has rested.
            let at_this_rate = time(left, self.loss).filter(|_| left > 0);
            due.min(at_this_rate.map_or(look, |until| look.min(until)))
        });
        next.min().unwrap_or(LOOKS.1).max(SHORTEST)
    }

    fn free(&self) -> Option<Bytes> {
        self.free.map(|(_, free)| free)
    }
}

/// Bytes in a second.
fn rate(bytes: Bytes, elapsed: Duration) -> f64 {
    to_f64(bytes) / elapsed.as_secs_f64().max(0.001)
}

/// The time in which so many bytes are written; `None` if that is not in sight.
fn time(bytes: Bytes, rate: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(to_f64(bytes) / rate).ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate does not get better by the last bits"
)]
fn to_f64(bytes: Bytes) -> f64 {
    bytes as f64
}
