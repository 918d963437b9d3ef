//! The configuration of eviction: thresholds with their grace periods and minimum reclaims.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::duration::{ParseDurationError, parse_go};

use super::{EvictionSignal, ResourceLevel, ResourceLevels, ThresholdError, ThresholdValue};

/// The grace period of pods that are evicted for a hard threshold, or for exceeding a limit of
/// local storage (kubelet: `immediateEvictionGracePeriodSeconds`).
pub const IMMEDIATE_GRACE: Duration = Duration::from_secs(1);

/// One threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvictionThreshold {
    /// The signal.
    pub signal: EvictionSignal,
    /// Below this amount the threshold is met.
    pub value: ThresholdValue,
    /// How long it must be met before something is evicted. Zero: a hard threshold.
    pub grace: Duration,
    /// How much more than the value must be available before the shortage is over.
    pub min_reclaim: Option<ThresholdValue>,
    /// Messages show the value with a binary suffix, such as `Mi`.
    pub(super) binary: bool,
}

impl EvictionThreshold {
    /// True if pods are evicted as soon as it is met, with [`IMMEDIATE_GRACE`].
    #[must_use]
    pub(crate) fn is_hard(&self) -> bool {
        self.grace.is_zero()
    }

    /// True if less than the value is available.
    #[must_use]
    pub(crate) fn is_met(&self, level: ResourceLevel) -> bool {
        level.available < self.value.of(level.capacity)
    }

    /// True if less than value and minimum reclaim together is available.
    #[must_use]
    pub(crate) fn is_unresolved(&self, level: ResourceLevel) -> bool {
        let reclaim = self.min_reclaim.map_or(0, |more| more.of(level.capacity));
        let enough = self.value.of(level.capacity).saturating_add(reclaim);
        level.available < enough
    }
}

/// The fields of the configuration that are about eviction, as their texts.
#[derive(Debug, Clone, Copy)]
pub struct EvictionTexts<'a> {
    /// `evictionHard`.
    pub hard: &'a BTreeMap<String, String>,
    /// `evictionSoft`.
    pub soft: &'a BTreeMap<String, String>,
    /// `evictionSoftGracePeriod`.
    pub soft_grace: &'a BTreeMap<String, String>,
    /// `evictionMinimumReclaim`.
    pub min_reclaim: &'a BTreeMap<String, String>,
    /// True if `enforceNodeAllocatable` has `pods`: the hard threshold of memory then also applies
    /// to the memory of all pods together.
    pub enforces_pods: bool,
}

/// The rules of eviction on this node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvictionPolicy {
    /// All thresholds, in the order in which shortages are handled.
    pub thresholds: Vec<EvictionThreshold>,
    /// `evictionPressureTransitionPeriod`: how long pressure lasts after its cause.
    pub transition: Duration,
    /// `evictionMaxPodGracePeriod`: longest grace period in an eviction for a soft threshold.
    pub max_pod_grace: Duration,
}

/// An invalid configuration of eviction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvictionPolicyError {
    /// An amount is invalid.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// A grace period is invalid.
    #[error("evictionSoftGracePeriod[{signal}]: {text:?} is not a duration")]
    Grace {
        /// The signal.
        signal: String,
        /// The configured text.
        text: String,
        /// The error of parsing it.
        source: ParseDurationError,
    },
    /// A soft threshold without a grace period.
    #[error("evictionSoft[{0}]: needs an entry of the same name in evictionSoftGracePeriod")]
    NoGrace(String),
}

impl EvictionPolicy {
    /// Parses the configuration. `0%` and `100%` switch a threshold off, unknown signals and those
    /// of `containerfs` are ignored: where writable layers have a file system of their own, the
    /// thresholds of `nodefs` apply to it.
    ///
    /// # Errors
    /// An amount or a duration is invalid, or a soft threshold has no grace period.
    pub fn parse(
        texts: &EvictionTexts<'_>,
        transition: Duration,
        max_pod_grace: Duration,
    ) -> Result<Self, EvictionPolicyError> {
        let mut thresholds = Vec::new();
        for (name, text) in texts.hard {
            thresholds.extend(threshold(texts, name, text, Duration::ZERO)?);
        }
        for (name, text) in texts.soft {
            let grace = soft_grace(texts, name)?;
            thresholds.extend(threshold(texts, name, text, grace)?);
        }
        let derived = |one: &EvictionThreshold| {
            let memory = texts.enforces_pods
                && one.is_hard()
                && one.signal == EvictionSignal::MemoryAvailable;
            let signal = match one.signal {
                EvictionSignal::MemoryAvailable if memory => {
                    EvictionSignal::AllocatableMemoryAvailable
                }
                EvictionSignal::NodefsAvailable => EvictionSignal::ContainerfsAvailable,
                EvictionSignal::NodefsInodesFree => EvictionSignal::ContainerfsInodesFree,
                _ => return None,
            };
            Some(EvictionThreshold { signal, ..*one })
        };
        let more: Vec<_> = thresholds.iter().filter_map(derived).collect();
        thresholds.extend(more);
        // Of two thresholds of one signal, the hard one decides about the grace period of the pod.
        thresholds.sort_by_key(|one| (one.signal, !one.is_hard()));
        Ok(Self {
            thresholds,
            transition,
            max_pod_grace,
        })
    }

    /// True if a shortage remains, measured against all thresholds with their minimum reclaims
    /// (kubelet: `reclaimNodeLevelResources`). Levels that are unknown do not count.
    #[must_use]
    pub fn has_shortage(&self, levels: &ResourceLevels) -> bool {
        self.thresholds.iter().any(|one| {
            levels
                .of(one.signal)
                .is_some_and(|level| one.is_unresolved(level))
        })
    }

    /// The grace period of a pod that is evicted for a threshold; `own` is
    /// `terminationGracePeriodSeconds`.
    #[must_use]
    pub fn pod_grace(&self, threshold: &EvictionThreshold, own: Duration) -> Duration {
        match threshold.is_hard() {
            true => IMMEDIATE_GRACE,
            // No pod is terminated with less than a second (kubelet:
            // `calculateEffectiveGracePeriod`).
            false => self.max_pod_grace.min(own).max(IMMEDIATE_GRACE),
        }
    }
}

fn threshold(
    texts: &EvictionTexts<'_>,
    name: &str,
    text: &str,
    grace: Duration,
) -> Result<Option<EvictionThreshold>, EvictionPolicyError> {
    let signal = EvictionSignal::from_name(name).filter(|one| one.thresholds_of().is_none());
    let value = ThresholdValue::parse(name, text)?;
    let (Some(signal), false) = (signal, value.is_off()) else {
        return Ok(None);
    };
    let min_reclaim = texts.min_reclaim.get(name);
    let min_reclaim = min_reclaim.map(|text| ThresholdValue::parse(name, text));
    Ok(Some(EvictionThreshold {
        signal,
        value,
        grace,
        min_reclaim: min_reclaim.transpose()?,
        binary: text.ends_with(['i', '%']),
    }))
}

fn soft_grace(texts: &EvictionTexts<'_>, name: &str) -> Result<Duration, EvictionPolicyError> {
    let Some(text) = texts.soft_grace.get(name) else {
        return Err(EvictionPolicyError::NoGrace(name.to_owned()));
    };
    parse_go(text).map_err(|source| EvictionPolicyError::Grace {
        signal: name.to_owned(),
        text: text.clone(),
        source,
    })
}
