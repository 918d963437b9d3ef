//! Which runtime pods run on where `containerRuntimeEndpoint` is empty. Pure.

use crate::{KubeletConfiguration, Resolved};

/// What is written for the embedded runtime, where nothing written would mean another one.
pub const EMBEDDED: &str = "embedded";

/// The kubelet's default (`SetDefaults_KubeletConfiguration` in
/// `pkg/kubelet/apis/config/v1beta1/defaults.go` of Kubernetes 1.36).
pub const KUBELETS_DEFAULT: &str = "unix:///run/containerd/containerd.sock";

/// Where kubeadm writes the configuration of a node.
const KUBEADMS_FILE: &str = "/var/lib/kubelet/config.yaml";

/// How the agent was started, as far as it says what an empty endpoint means.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The program was called by the name `kubelet`.
    pub as_kubelet: bool,
    /// Path of the configuration file, as it was given.
    pub file: Option<&'a str>,
}

impl Resolved {
    /// Puts the runtime in that an empty endpoint, or `embedded`, stands for: afterwards an empty one
    /// is the embedded runtime. A node that was made for the kubelet has its runtime already, and perhaps
    /// its pods in it; those must not run a second time. True if the kubelet's default was put in.
    pub fn settle_runtime(&mut self, invocation: Invocation<'_>) -> bool {
        let KubeletConfiguration {
            container_runtime_endpoint: endpoint,
            ..
        } = &mut self.config;
        if endpoint == EMBEDDED {
            endpoint.clear();
            return false;
        }
        let kubeadm = self.joined && invocation.file == Some(KUBEADMS_FILE);
        let kubelets = endpoint.is_empty() && (invocation.as_kubelet || kubeadm);
        if kubelets {
            KUBELETS_DEFAULT.clone_into(endpoint);
        }
        kubelets
    }
}
