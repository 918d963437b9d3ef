//! The JSON of the summary: names and order of the kubelet's types.

use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Summary<'a> {
    pub(super) node: Node<'a>,
    pub(super) pods: Vec<Pod<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node<'a> {
    pub(super) node_name: &'a str,
    /// `null` if it is unknown.
    pub(super) start_time: Option<String>,
    #[serde(flatten)]
    pub(super) usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network: Option<Network<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fs: Option<Fs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) runtime: Option<Runtime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rlimit: Option<Rlimit>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system_containers: Vec<Container<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Runtime {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image_fs: Option<Fs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) container_fs: Option<Fs>,
}

#[derive(Serialize)]
pub(super) struct Rlimit {
    pub(super) time: String,
    pub(super) maxpid: u64,
    pub(super) curproc: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pod<'a> {
    pub(super) pod_ref: PodReference<'a>,
    pub(super) start_time: String,
    pub(super) containers: Vec<Container<'a>>,
    #[serde(flatten)]
    pub(super) usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network: Option<Network<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) volume: Vec<Volume<'a>>,
    #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    pub(super) ephemeral_storage: Option<Fs>,
    #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
    pub(super) process_stats: Option<Processes>,
}

/// No volume here has a claim, so there is no `pvcRef`.
#[derive(Serialize)]
pub(super) struct Volume<'a> {
    #[serde(flatten)]
    pub(super) fs: Fs,
    pub(super) name: &'a str,
}

#[derive(Serialize)]
pub(super) struct Processes {
    pub(super) process_count: u64,
}

#[derive(Serialize)]
pub(super) struct PodReference<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    /// `null` if it is unknown.
    pub(super) start_time: Option<String>,
    #[serde(flatten)]
    pub(super) usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rootfs: Option<Fs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logs: Option<Fs>,
}

/// What the node, pods and containers have in common.
#[derive(Serialize)]
pub(super) struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<CpuStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<MemoryStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) swap: Option<Swap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) io: Option<Io>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CpuStats {
    pub(super) time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_nano_cores: Option<u64>,
    pub(super) usage_core_nano_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) psi: Option<Psi>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemoryStats {
    pub(super) time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) available_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) working_set_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rss_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) page_faults: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) major_page_faults: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) psi: Option<Psi>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Swap {
    pub(super) time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) swap_available_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) swap_usage_bytes: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct Psi {
    pub(super) full: PsiData,
    pub(super) some: PsiData,
}

#[derive(Serialize)]
pub(super) struct PsiData {
    pub(super) total: u64,
    pub(super) avg10: f64,
    pub(super) avg60: f64,
    pub(super) avg300: f64,
}

#[derive(Serialize)]
pub(super) struct Io {
    pub(super) time: String,
    pub(super) psi: Psi,
}

/// The default interface, and all interfaces.
#[derive(Serialize)]
pub(super) struct Network<'a> {
    pub(super) time: String,
    #[serde(flatten)]
    pub(super) default: Interface<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) interfaces: Vec<Interface<'a>>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interface<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rx_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rx_errors: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tx_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tx_errors: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fs {
    pub(super) time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) available_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) capacity_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) used_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inodes_free: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inodes_used: Option<u64>,
}
