//! Converts the configuration to the settings of the node object.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_cluster::objects::{ChangeDetection, SecretsAtRest};
use rubelet_config::{FeatureGates, Flags, KubeletConfiguration, Resolved};
use rubelet_node_plan::node_status::{NodeSettings, object::NodeTaint};

use crate::run::{allocatable, node::Node};

/// The configured properties of the node.
pub(super) fn node(
    flags: &Flags,
    resolved: &Resolved,
    node: &Node,
) -> anyhow::Result<NodeSettings> {
    let config = &resolved.config;
    let labels: BTreeMap<Box<str>, Box<str>> = flags
        .node_labels()
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    let taints = config.register_with_taints.iter().map(|taint| NodeTaint {
        key: taint.key.as_str().into(),
        value: taint.value.as_str().into(),
        effect: taint.effect.as_str().into(),
    });
    let (reserved, thresholds) = allocatable::reservations(config, flags)?;
    let count = |number: i32| u64::try_from(number).unwrap_or(0);
    Ok(NodeSettings {
        labels,
        taints: taints.collect(),
        provider_id: config.provider_id.as_str().into(),
        external_cloud: flags.cloud_is_external(),
        node_ips: flags.node_ips(),
        register: config.register_node,
        controller_attach_detach: config.enable_controller_attach_detach,
        max_pods: count(config.max_pods),
        pods_per_core: count(config.pods_per_core),
        reserved,
        thresholds,
        max_images: usize::try_from(config.node_status_max_images).ok(),
        local_storage: config.local_storage_capacity_isolation,
        update_frequency: config.node_status_update_frequency,
        report_frequency: config.node_status_report_frequency,
        lease_duration: std::time::Duration::from_secs(count(config.node_lease_duration_seconds)),
        declared_features: declared(&resolved.gates),
        ..NodeSettings::new(&node.name)
    })
}

/// The declared features that the scheduler may rely on.
fn declared(gates: &FeatureGates) -> Vec<Box<str>> {
    let done = [
        "ExtendWebSocketsToKubelet",
        "RestartAllContainersOnContainerExits",
    ];
    let names = done.into_iter().filter(|name| gates.enabled(name));
    match gates.enabled("NodeDeclaredFeatures") {
        true => names.map(Box::from).collect(),
        false => Vec::new(),
    }
}

/// `configMapAndSecretChangeDetectionStrategy`.
pub(super) fn detection(config: &KubeletConfiguration) -> ChangeDetection {
    match config
        .config_map_and_secret_change_detection_strategy
        .as_str()
    {
        "Cache" => ChangeDetection::Cache,
        "Get" => ChangeDetection::Get,
        _ => ChangeDetection::Watch,
    }
}

/// `rubelet.secretsAtRest`, with systemd's credential as the key if the unit has one.
pub(super) fn secrets_at_rest(resolved: &Resolved, node: &Node) -> SecretsAtRest {
    let options = &resolved.rubelet;
    if options.secrets_at_rest == "none" {
        return SecretsAtRest::None;
    }
    let credentials = env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    SecretsAtRest::Encrypted {
        credential: credentials.map(|directory| directory.join("rubelet.secrets-key")),
        key_file: PathBuf::from(&options.secrets_key_file),
        node_name: Arc::clone(&node.name),
    }
}

/// Whether the kernel enforces AppArmor profiles.
pub(super) fn apparmor() -> bool {
    rubelet_host::identity::has_apparmor(Path::new("/"))
}

/// `allowedUnsafeSysctls`.
pub(super) fn sysctls(config: &KubeletConfiguration) -> Arc<[String]> {
    config.allowed_unsafe_sysctls.clone().into()
}
