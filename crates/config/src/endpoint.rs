//! The runtime that an empty `containerRuntimeEndpoint` selects. Pure.

use crate::{EMBEDDED, KubeletConfiguration, Resolved};

/// The kubelet's default (`SetDefaults_KubeletConfiguration` in
/// `pkg/kubelet/apis/config/v1beta1/defaults.go` of Kubernetes 1.36).
pub(crate) const KUBELET_DEFAULT_ENDPOINT: &str = "unix:///run/containerd/containerd.sock";

/// Where kubeadm writes the configuration of a node.
const KUBEADM_CONFIG_FILE: &str = "/var/lib/kubelet/config.yaml";

/// How the agent was started, which decides what an empty endpoint selects.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The program was called by the name `kubelet`.
    pub as_kubelet: bool,
    /// Path of the configuration file, as it was given.
    pub file: Option<&'a str>,
}

impl Resolved {
    /// Resolves an empty endpoint and `embedded`; afterwards an empty endpoint is the embedded runtime. A
    /// node that was set up for the kubelet has a runtime already, perhaps with running pods, which must
    /// not run a second time. Returns whether the kubelet's default was chosen.
    pub fn resolve_runtime_endpoint(&mut self, invocation: Invocation<'_>) -> bool {
        let KubeletConfiguration {
            container_runtime_endpoint: endpoint,
            ..
        } = &mut self.config;
        if endpoint == EMBEDDED {
            endpoint.clear();
            return false;
        }
        let kubeadm = self.joined && invocation.file == Some(KUBEADM_CONFIG_FILE);
        let use_kubelet_default = endpoint.is_empty() && (invocation.as_kubelet || kubeadm);
        if use_kubelet_default {
            KUBELET_DEFAULT_ENDPOINT.clone_into(endpoint);
        }
        use_kubelet_default
    }
}
