//! What stays the same while the agent runs: which node and which program this is.

use prometheus::{IntGauge, IntGaugeVec};

use super::factory::MetricFactory;

/// How the program was built, with Kubernetes' names.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuildLabels<'a> {
    /// Of the supported Kubernetes API.
    pub major: &'a str,
    /// Of the supported Kubernetes API.
    pub minor: &'a str,
    /// The version that the node reports.
    pub git_version: &'a str,
    /// Hash of the commit.
    pub git_commit: &'a str,
    /// Whether the source was that of the commit.
    pub git_tree_state: &'a str,
    /// When it was committed; builds do not depend on the time. Empty if unknown.
    pub build_date: &'a str,
    /// The compiler and its version.
    pub compiler: &'a str,
    /// Operating system and architecture in Go's words.
    pub platform: &'a str,
}

/// What stays the same while the agent runs; without samples of the node and the program until they are set.
#[derive(Debug)]
pub struct FactMetrics {
    node: IntGaugeVec,
    build: IntGaugeVec,
    cgroup_version: IntGauge,
    credential_providers: IntGaugeVec,
    metrics_provider: IntGaugeVec,
}

impl FactMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            node: factory.gauges(
                "kubelet_node_name",
                "The node's name. The count is always 1.",
                "node",
            ),
            build: factory.gauges_by(
                "kubernetes_build_info",
                "A metric with a constant '1' value labeled by the version of Kubernetes, and by the commit and the \
                 compiler from which the program was built.",
                &[
                    "major",
                    "minor",
                    "git_version",
                    "git_commit",
                    "git_tree_state",
                    "build_date",
                    "go_version",
                    "compiler",
                    "platform",
                ],
            ),
            cgroup_version: factory.gauge("kubelet_cgroup_version", "cgroup version on the hosts."),
            credential_providers: factory.gauges(
                "kubelet_credential_provider_config_info",
                "Information about the last applied credential provider configuration with hash as label",
                "hash",
            ),
            metrics_provider: factory.gauges(
                "kubelet_metrics_provider",
                "Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'",
                "provider",
            ),
        }
    }

    /// Shows the node's name.
    pub fn set_node(&self, name: &str) {
        self.node.with_label_values(&[name]).set(1);
    }

    /// Shows the cgroup version of the node: 2 only where all controllers are in the unified hierarchy.
    pub fn set_cgroup_version(&self, version: u8) {
        self.cgroup_version.set(version.into());
    }

    /// Shows the hash of the configuration of credential providers.
    pub fn set_credential_providers(&self, hash: &str) {
        self.credential_providers.with_label_values(&[hash]).set(1);
    }

    /// Shows whose numbers of pods and containers come first: the runtime's, or those that are read here, as
    /// cAdvisor does in the kubelet.
    pub fn set_metrics_provider(&self, is_runtime: bool) {
        let provider = if is_runtime { "cri" } else { "cadvisor" };
        self.metrics_provider.with_label_values(&[provider]).set(1);
    }

    /// Shows how the program was built. There is no version of Go.
    pub fn set_build(&self, build: &BuildLabels<'_>) {
        let values = [
            build.major,
            build.minor,
            build.git_version,
            build.git_commit,
            build.git_tree_state,
            build.build_date,
            "",
            build.compiler,
            build.platform,
        ];
        self.build.with_label_values(&values).set(1);
    }
}
