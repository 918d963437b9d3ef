//! To which host IDs a pod with a user namespace maps. No two pods share one, so that one which
//! breaks out has no rights over the others.

use std::collections::BTreeMap;

use rubelet_api::security::UserRange;
use rubelet_base::PodUid;

/// How many IDs a unit has.
pub const UNIT: u32 = 65_536;

/// From where to where the IDs of pods are, and how many each gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserSettings {
    /// The first ID of the first pod.
    pub first: u32,
    /// How many there are for all pods together.
    pub total: u32,
    /// `userNamespaces.idsPerPod`.
    pub per_pod: u32,
}

/// The ranges in use.
#[derive(Debug, Clone)]
pub struct UserRanges {
    settings: UserSettings,
    used: BTreeMap<PodUid, UserRange>,
}

/// No users are left for a pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "all {total} user IDs from {first} on are in use, and each pod with hostUsers: false needs {per_pod}; remove such pods, or give the user kubelet more in /etc/subuid and /etc/subgid"
)]
pub struct UserRangesExhausted {
    first: u32,
    total: u32,
    per_pod: u32,
}

/// Why the entries of the user `kubelet` in `/etc/subuid` and `/etc/subgid` can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DelegationError {
    /// The range doesn't fall into units, or is too small.
    #[error(
        "the range {first}:{total} of the user kubelet in /etc/subuid must begin and end at multiples of {unit}, not with the first, and have at least {per_pod} IDs",
        unit = UNIT
    )]
    Range {
        /// The first ID.
        first: u32,
        /// How many there are.
        total: u32,
        /// How many a pod needs.
        per_pod: u32,
    },
    /// They differ, or are several.
    #[error("the user kubelet must have one and the same range in /etc/subuid and /etc/subgid")]
    Ambiguous,
}

impl UserSettings {
    /// The defaults: enough for `pods`, from the first unit after the host's own users on.
    #[must_use]
    pub fn standard(per_pod: u32, pods: u32) -> Self {
        let most = u32::MAX - UNIT;
        Self {
            first: UNIT,
            total: per_pod.saturating_mul(pods.max(1)).min(most - most % UNIT),
            per_pod,
        }
    }

    /// What the entries of the user `kubelet` in `/etc/subuid` and `/etc/subgid` allow.
    ///
    /// # Errors
    /// They differ, are several, or don't fall into units.
    pub fn delegated(
        per_pod: u32,
        subuid: &str,
        subgid: &str,
    ) -> Result<Option<Self>, DelegationError> {
        let uids: Vec<(u32, u32)> = entries(subuid).collect();
        let gids: Vec<(u32, u32)> = entries(subgid).collect();
        match (&*uids, &*gids) {
            ([], []) => Ok(None),
            ([one], [other]) if one == other => {
                let (first, total) = *one;
                let fits = first >= UNIT && first % UNIT == 0 && total % UNIT == 0;
                if fits && total >= per_pod && first.checked_add(total - 1).is_some() {
                    Ok(Some(Self {
                        first,
                        total,
                        per_pod,
                    }))
                } else {
                    Err(DelegationError::Range {
                        first,
                        total,
                        per_pod,
                    })
                }
            }
            _ => Err(DelegationError::Ambiguous),
        }
    }
}

fn entries(text: &str) -> impl Iterator<Item = (u32, u32)> {
    text.lines().filter_map(|line| {
        let range = line.trim().strip_prefix("kubelet:")?;
        let (first, total) = range.split_once(':')?;
        Some((first.parse().ok()?, total.parse().ok()?))
    })
}

impl UserRanges {
    /// Nothing in use yet.
    #[must_use]
    pub fn new(settings: UserSettings) -> Self {
        Self {
            settings,
            used: BTreeMap::new(),
        }
    }

    /// Takes a range that a pod has from an earlier run. It keeps it, whatever the settings are
    /// now.
    pub fn adopt(&mut self, pod: PodUid, range: UserRange) {
        self.used.insert(pod, range);
    }

    /// The range of a pod, if it has one.
    #[must_use]
    pub fn get(&self, pod: &PodUid) -> Option<UserRange> {
        self.used.get(pod).copied()
    }

    /// The range of a pod; the first free one if it has none yet.
    ///
    /// # Errors
    /// All are in use.
    pub fn take(&mut self, pod: &PodUid) -> Result<UserRange, UserRangesExhausted> {
        if let Some(range) = self.get(pod) {
            return Ok(range);
        }
        let UserSettings {
            first,
            total,
            per_pod,
        } = self.settings;
        let range = (0..total / per_pod)
            .map(|index| UserRange {
                first: first + index * per_pod,
                length: per_pod,
            })
            // Not by index: an adopted range may be of other settings and lie across two of these.
            .find(|range| !self.used.values().any(|used| overlap(*used, *range)))
            .ok_or(UserRangesExhausted {
                first,
                total,
                per_pod,
            })?;
        self.used.insert(pod.clone(), range);
        Ok(range)
    }

    /// The pod is gone.
    pub fn release(&mut self, pod: &PodUid) {
        self.used.remove(pod);
    }
}

fn overlap(one: UserRange, other: UserRange) -> bool {
    let end = |range: UserRange| u64::from(range.first) + u64::from(range.length);
    u64::from(one.first) < end(other) && u64::from(other.first) < end(one)
}

#[cfg(test)]
mod tests;
