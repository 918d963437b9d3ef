//! Which unused images are removed, and when: by the use of the disk, and by age.
//!
//! Source of the rules: `pkg/kubelet/images/image_gc_manager.go` of Kubernetes 1.36. Times count from the
//! start of the agent, as with the kubelet: what was used before, nobody remembers. Other than with the
//! kubelet, an image that is there at the start is as new as one that comes then: it may have been put
//! there for pods that are about to come.

use std::{collections::BTreeMap, time::Duration};

/// When images are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageCollectionPolicy {
    /// `imageGCHighThresholdPercent`: use of the disk from which images are removed; 100: never.
    pub high_percent: u8,
    /// `imageGCLowThresholdPercent`: use of the disk down to which they are removed.
    pub low_percent: u8,
    /// `imageMinimumGCAge`: an image that was seen for the first time less long ago stays.
    pub min_age: Duration,
    /// `imageMaximumGCAge`: an image that was not used for longer goes; `None`: it may stay.
    pub max_age: Option<Duration>,
}

impl ImageCollectionPolicy {
    /// Whether no image is ever removed.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.high_percent >= 100 && self.max_age.is_none()
    }

    /// How many bytes must become free on a disk; `None` while it is not full enough.
    #[must_use]
    pub fn bytes_to_free(&self, available: u64, capacity: u64) -> Option<u64> {
        if capacity == 0 || self.high_percent >= 100 {
            return None;
        }
        let share = |percent: u8| u128::from(capacity) * u128::from(percent) / 100;
        let available = available.min(capacity);
        // Rounded as upstream: 100 minus the whole percent that are available.
        let used_percent = 100 - u128::from(available) * 100 / u128::from(capacity);
        if used_percent < u128::from(self.high_percent) {
            return None;
        }
        let wanted = share(100 - self.low_percent.min(100));
        let missing = wanted.saturating_sub(available.into());
        Some(u64::try_from(missing).unwrap_or(u64::MAX)).filter(|bytes| *bytes > 0)
    }
}

/// An image that the runtime lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedImage {
    /// Its identifier.
    pub id: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether a container has been made from it, or a pod of this node asks for it.
    pub in_use: bool,
    /// Whether the runtime keeps it in any case.
    pub pinned: bool,
}

/// What is remembered of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// When it was listed for the first time.
    first: Duration,
    /// When it was in use for the last time; `None` if it was not since the start.
    used: Option<Duration>,
}

/// The images of the node and their use since the start of the agent.
#[derive(Debug, Clone, Default)]
pub struct ImageHistory {
    seen: BTreeMap<String, Seen>,
}

/// An image that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedImage {
    /// Its identifier.
    pub id: String,
    /// How many bytes become free.
    pub bytes: u64,
    /// Whether it must go because of its age.
    pub too_old: bool,
}

impl ImageHistory {
    /// Takes note of the images that are there; `now` is the time since the start. Returns those that
    /// may be removed, the one that was not used for longest first.
    pub fn observe(
        &mut self,
        listed: &[ListedImage],
        policy: &ImageCollectionPolicy,
        now: Duration,
    ) -> Vec<UnusedImage> {
        let before = std::mem::take(&mut self.seen);
        let mut unused = Vec::new();
        let mut seen = BTreeMap::new();
        for image in listed {
            let fresh = Seen {
                first: now,
                used: None,
            };
            let mut known = before.get(&image.id).copied().unwrap_or(fresh);
            if image.in_use {
                known.used = Some(now);
            } else if !image.pinned && known.age(now) >= policy.min_age {
                let idle = now.saturating_sub(known.used.unwrap_or(known.first));
                let too_old = policy.max_age.is_some_and(|limit| idle > limit);
                unused.push((known, image, too_old));
            }
            seen.insert(image.id.clone(), known);
        }
        self.seen = seen;
        unused.sort_by_key(|(known, ..)| (known.used, known.first));
        unused
            .into_iter()
            .map(|(_, image, too_old)| UnusedImage {
                id: image.id.clone(),
                bytes: image.bytes,
                too_old,
            })
            .collect()
    }

    /// How long until the next image has `policy.min_age`; `None` if all have it.
    #[must_use]
    pub fn until_of_age(&self, policy: &ImageCollectionPolicy, now: Duration) -> Option<Duration> {
        let missing = self
            .seen
            .values()
            .map(|known| policy.min_age.saturating_sub(known.age(now)));
        missing.filter(|missing| !missing.is_zero()).min()
    }
}

impl Seen {
    fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.first)
    }
}

#[cfg(test)]
mod tests;
