//! The content of a CDI specification file.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use super::name;

/// The supported versions of the specification.
const VERSIONS: [&str; 10] = [
    "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0",
];

/// Devices of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CdiDocument {
    /// Version of the specification it follows.
    pub cdi_version: String,
    /// `vendor/class`.
    pub kind: String,
    /// Notes for people and tools.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// The devices.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Edits for a container with any of them.
    #[serde(default)]
    pub(super) container_edits: ContainerEdits,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its name within the kind.
    pub name: String,
    /// Notes for people and tools.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) container_edits: ContainerEdits,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ContainerEdits {
    pub(super) env: Vec<String>,
    pub(super) device_nodes: Vec<DeviceNode>,
    pub(super) net_devices: Vec<serde_json::Value>,
    pub(super) mounts: Vec<Mount>,
    pub(super) hooks: Vec<Hook>,
    #[serde(rename = "intelRdt")]
    pub(super) intel_rdt: Option<serde_json::Value>,
    #[serde(rename = "additionalGids")]
    pub(super) additional_gids: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeviceNode {
    pub(super) path: PathBuf,
    pub(super) host_path: Option<PathBuf>,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) major: i64,
    #[serde(default)]
    pub(super) minor: i64,
    pub(super) file_mode: Option<u32>,
    #[serde(default)]
    pub(super) permissions: String,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mount {
    pub(super) host_path: PathBuf,
    pub(super) container_path: PathBuf,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) options: Vec<String>,
}

/// Only its name and program are ever reported: this runtime runs no hooks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hook {
    pub(super) hook_name: String,
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: Vec<String>,
    pub(super) timeout: Option<i64>,
}

/// A problem of a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It is not a CDI specification.
    #[error("{0}")]
    Syntax(String),
    /// It has no YAML document, or several.
    #[error("expected one YAML document, found {0}")]
    Documents(usize),
    /// A field has an invalid value.
    #[error("{0}")]
    Field(String),
}

/// Reads a file, JSON or YAML.
///
/// # Errors
/// See [`SpecError`].
pub fn read(text: &str) -> Result<CdiDocument, SpecError> {
    let documents =
        rubelet_yaml::documents(text).map_err(|error| SpecError::Syntax(error.to_string()))?;
    let [document] = documents.as_slice() else {
        return Err(SpecError::Documents(documents.len()));
    };
    let found: CdiDocument = document
        .decode_strict()
        .map_err(|error| SpecError::Syntax(error.to_string()))?;
    check(&found).map_err(SpecError::Field)?;
    Ok(found)
}

fn check(document: &CdiDocument) -> Result<(), String> {
    let version = document.cdi_version.as_str();
    let plain = version.strip_prefix('v').unwrap_or(version);
    if !VERSIONS.contains(&plain) {
        return Err(format!(
            "cdiVersion {version:?} is not supported: use {}",
            VERSIONS.join(", ")
        ));
    }
    name::check_kind(&document.kind)?;
    if document.devices.is_empty() {
        return Err("no devices".to_owned());
    }
    check_edits("containerEdits", &document.container_edits)?;
    for (index, device) in document.devices.iter().enumerate() {
        let at = format!("devices[{index}]");
        name::check_device(&device.name).map_err(|why| format!("{at}.name: {why}"))?;
        let mut before = document.devices[..index].iter();
        if before.any(|other| other.name == device.name) {
            return Err(format!("{at}.name: duplicate device {:?}", device.name));
        }
        if device.container_edits == ContainerEdits::default() {
            return Err(format!("{at}.containerEdits: must not be empty"));
        }
        check_edits(&format!("{at}.containerEdits"), &device.container_edits)?;
    }
    Ok(())
}

fn check_edits(at: &str, edits: &ContainerEdits) -> Result<(), String> {
    for (index, one) in edits.env.iter().enumerate() {
        let named = one
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty());
        if !named || one.contains('\0') {
            return Err(format!("{at}.env[{index}]: {one:?} is not NAME=value"));
        }
    }
    for (index, node) in edits.device_nodes.iter().enumerate() {
        let at = format!("{at}.deviceNodes[{index}]");
        let paths = [Some(&node.path), node.host_path.as_ref()];
        for path in paths.into_iter().flatten() {
            if !path.is_absolute() {
                return Err(format!("{at}: {path:?} is not an absolute path"));
            }
        }
        if !matches!(node.kind.as_str(), "" | "b" | "c" | "u" | "p") {
            return Err(format!(
                "{at}.type: {:?} is not supported: use b, c, u or p",
                node.kind
            ));
        }
        if node.permissions.chars().any(|one| !"rwm".contains(one)) {
            let wrong = &node.permissions;
            return Err(format!(
                "{at}.permissions: {wrong:?} may only contain the letters r, w and m"
            ));
        }
    }
    for (index, mount) in edits.mounts.iter().enumerate() {
        let at = format!("{at}.mounts[{index}]");
        if !mount.container_path.is_absolute() {
            let path = &mount.container_path;
            return Err(format!(
                "{at}.containerPath: {path:?} is not an absolute path"
            ));
        }
        if mount.host_path.as_os_str().is_empty() {
            return Err(format!("{at}.hostPath: must not be empty"));
        }
    }
    for (index, hook) in edits.hooks.iter().enumerate() {
        let known = [
            "prestart",
            "createRuntime",
            "createContainer",
            "startContainer",
            "poststart",
            "poststop",
        ];
        if !known.contains(&hook.hook_name.as_str()) {
            return Err(format!(
                "{at}.hooks[{index}].hookName: {:?} is not supported: use {}",
                hook.hook_name,
                known.join(", ")
            ));
        }
    }
    Ok(())
}
