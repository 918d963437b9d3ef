//! Tests of eviction, and the values that they share.

mod choosing;
mod parsing;
mod properties;
mod rounds;
mod schedule;

use std::{collections::BTreeMap, time::Duration};

use rubelet_api::pod::{Pod, PodSource};
use rubelet_base::{PodName, PodUid};

use super::*;
use crate::test_pods::{amounts, container, pod};

const MIB: u64 = 1 << 20;

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// A policy with a transition period of 300 s, and at most 20 s for pods in a soft eviction.
fn policy(
    hard: &[(&str, &str)],
    soft: &[(&str, &str)],
    soft_grace: &[(&str, &str)],
    min_reclaim: &[(&str, &str)],
) -> EvictionPolicy {
    let texts = EvictionTexts {
        hard: &texts(hard),
        soft: &texts(soft),
        soft_grace: &texts(soft_grace),
        min_reclaim: &texts(min_reclaim),
        enforces_pods: false,
    };
    EvictionPolicy::parse(&texts, Duration::from_secs(300), Duration::from_secs(20)).unwrap()
}

fn level(available: u64, capacity: u64) -> ResourceLevel {
    ResourceLevel {
        available,
        capacity,
    }
}

/// Levels of which only memory is known.
fn memory(available: u64) -> ResourceLevels {
    ResourceLevels {
        memory: Some(level(available, 1000 * MIB)),
        ..ResourceLevels::default()
    }
}

/// A shortage of one signal below an absolute threshold.
fn shortage(signal: &str, threshold: &str, available: u64) -> Shortage {
    let policy = policy(&[(signal, threshold)], &[], &[], &[]);
    Shortage {
        threshold: policy.thresholds[0],
        level: level(available, 1000 * MIB),
    }
}

/// A pod of the API server with one container named `a`, which requests that much memory.
fn api_pod(name: &str, priority: i32, memory: u64) -> Pod {
    let mut pod = pod();
    pod.name = PodName::new("default", name);
    pod.uid = PodUid::from(name);
    pod.source = PodSource::Api;
    pod.spec.priority = priority;
    pod.spec.containers = vec![container("a", amounts(0, memory), Default::default())];
    pod
}

fn uses_memory(bytes: u64) -> PodUsage {
    PodUsage {
        memory: bytes,
        ..PodUsage::default()
    }
}
