//! Small sections about the node and its resources.

use crate::Quantity;
use crate::field::{FieldType, Kind, section};
use crate::go_duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

section! {
    /// How containers use swap.
    pub struct MemorySwap {
        /// `NoSwap`, `LimitedSwap`, or empty for `NoSwap`.
        swap_behavior: String = String::new(), "swapBehavior", Unset, Works;
    }
}

section! {
    /// Back-off of containers that crash.
    pub struct CrashLoopBackOff {
        /// Maximum back-off before a container is restarted, from 1s to 300s.
        #[serde(with = "go_duration")]
        max_container_restart_period: Duration = Duration::from_secs(300), "maxContainerRestartPeriod", Counts, Works;
    }
}

section! {
    /// User namespaces of pods.
    pub struct UserNamespaces {
        /// Number of user ids of a pod: a multiple of 65536.
        ids_per_pod: i64 = 65_536, "idsPerPod", Counts, Works;
    }
}

/// A taint for the Node object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// A qualified name.
    pub key: String,
    /// A label value, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// Set by the API server only; must not be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

impl FieldType for Vec<Taint> {
    const KIND: Kind = Kind::ObjectList(&["key", "value", "effect"]);
}

/// Memory of one NUMA node that is reserved for the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryReservation {
    /// Number of the NUMA node.
    pub numa_node: i32,
    /// `memory` or `hugepages-SIZE`, and the amount.
    pub limits: BTreeMap<String, Quantity>,
}

impl FieldType for Vec<MemoryReservation> {
    const KIND: Kind = Kind::ObjectList(&["numaNode", "limits"]);
}

/// Grace period of pods of a priority and above when the node shuts down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriorityGracePeriod {
    /// Lowest priority of the group.
    pub priority: i32,
    /// Seconds.
    pub shutdown_grace_period_seconds: i64,
}

impl FieldType for Vec<PriorityGracePeriod> {
    const KIND: Kind = Kind::ObjectList(&["priority", "shutdownGracePeriodSeconds"]);
}
