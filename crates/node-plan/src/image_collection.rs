//! Image garbage collection: the unused images to remove, by disk usage and by age.
//!
//! Source of the rules: `pkg/kubelet/images/image_gc_manager.go` of Kubernetes 1.36. Times count
//! from the start of the agent, as in the kubelet: earlier use is not recorded. Unlike in the
//! kubelet, an image that is present at the start counts as new: it may have been preloaded for
//! future pods.

use std::{collections::BTreeMap, time::Duration};

/// The thresholds of image garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageCollectionPolicy {
    /// `imageGCHighThresholdPercent`: disk usage that triggers a removal; 100: never.
    pub high_percent: u8,
    /// `imageGCLowThresholdPercent`: disk usage at which the removal ends.
    pub low_percent: u8,
    /// `imageMinimumGCAge`: younger images are kept; the age counts from the first detection.
    pub min_age: Duration,
    /// `imageMaximumGCAge`: images unused for longer are removed; `None`: no limit.
    pub max_age: Option<Duration>,
}

impl ImageCollectionPolicy {
    /// True if no image is ever removed.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.high_percent >= 100 && self.max_age.is_none()
    }

    /// The number of bytes to free on a disk; `None` below the high threshold.
    #[must_use]
    pub fn bytes_to_free(&self, available: u64, capacity: u64) -> Option<u64> {
        if capacity == 0 || self.high_percent >= 100 {
            return None;
        }
        let share = |percent: u8| u128::from(capacity) * u128::from(percent) / 100;
        let available = available.min(capacity);
        // Rounded as upstream: 100 minus the whole percentage that is available.
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
    /// True if a container was created from it, or a pod of this node references it.
    pub in_use: bool,
    /// True if the runtime has pinned it.
    pub pinned: bool,
}

/// The use of an image since the start of the agent (upstream: `imageRecord`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImageRecord {
    /// When it was first listed.
    first: Duration,
    /// When it was last in use; `None` if never since the start.
    used: Option<Duration>,
}

/// The images of the node and their use since the start of the agent.
#[derive(Debug, Clone, Default)]
pub struct ImageHistory {
    seen: BTreeMap<String, ImageRecord>,
}

/// An image that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedImage {
    /// Its identifier.
    pub id: String,
    /// The number of bytes that its removal frees.
    pub bytes: u64,
    /// True if it must be removed because of its age.
    pub too_old: bool,
}

impl ImageHistory {
    /// Updates the records from the list of images; `now` is the time since the start. Returns the
    /// images that may be removed, least recently used first.
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
            let fresh = ImageRecord {
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

    /// The time until the next image reaches `policy.min_age`; `None` if all have.
    #[must_use]
    pub fn until_of_age(&self, policy: &ImageCollectionPolicy, now: Duration) -> Option<Duration> {
        let missing = self
            .seen
            .values()
            .map(|known| policy.min_age.saturating_sub(known.age(now)));
        missing.filter(|missing| !missing.is_zero()).min()
    }
}

impl ImageRecord {
    fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.first)
    }
}

#[cfg(test)]
mod tests;
