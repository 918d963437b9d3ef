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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) swap: Option<Swap>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pod<'a> {
    pub(super) pod_ref: PodReference<'a>,
    pub(super) start_time: String,
    pub(super) containers: Vec<Container<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) swap: Option<Swap>,
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
    pub(super) start_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) swap: Option<Swap>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cpu {
    pub(super) time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_nano_cores: Option<u64>,
    pub(super) usage_core_nano_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) psi: Option<Psi>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
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
