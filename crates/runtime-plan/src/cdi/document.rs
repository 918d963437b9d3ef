//! The content of a CDI specification file.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use super::name::{self, NameError};

/// The supported versions of the specification.
const VERSIONS: [&str; 10] = [
    "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0",
];

/// The phases in which a hook may run.
const HOOKS: [&str; 6] = [
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
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
    /// This runtime does not know its version of the specification.
    #[error("cdiVersion {0:?} is not supported: use {versions}", versions = VERSIONS.join(", "))]
    Version(String),
    /// Its kind is invalid.
    #[error("{0}")]
    Kind(NameError),
    /// It has no devices.
    #[error("no devices")]
    NoDevices,
    /// A field has an invalid value.
    #[error("{field}: {error}")]
    Field {
        /// The field, such as `devices[0].containerEdits.env[1]`.
        field: String,
        /// What is wrong with it.
        error: FieldError,
    },
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The name of a device is invalid.
    #[error("{0}")]
    Name(NameError),
    /// Another device has the same name.
    #[error("duplicate device {0:?}")]
    Duplicate(String),
    /// The field is empty.
    #[error("must not be empty")]
    Empty,
    /// An environment variable has no name or no value.
    #[error("{0:?} is not NAME=value")]
    Variable(String),
    /// A path is relative.
    #[error("{0:?} is not an absolute path")]
    RelativePath(PathBuf),
    /// A device node has an unknown type.
    #[error("{0:?} is not supported: use b, c, u or p")]
    NodeType(String),
    /// Permissions have other letters.
    #[error("{0:?} may only contain the letters r, w and m")]
    Permissions(String),
    /// A hook has an unknown name.
    #[error("{0:?} is not supported: use {hooks}", hooks = HOOKS.join(", "))]
    HookName(String),
}

impl FieldError {
    /// The error of a file with this one in `field`.
    fn at(self, field: String) -> SpecError {
        SpecError::Field { field, error: self }
    }
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
    check(&found)?;
    Ok(found)
}

fn check(document: &CdiDocument) -> Result<(), SpecError> {
    let version = document.cdi_version.as_str();
    let plain = version.strip_prefix('v').unwrap_or(version);
    if !VERSIONS.contains(&plain) {
        return Err(SpecError::Version(version.to_owned()));
    }
    name::check_kind(&document.kind).map_err(SpecError::Kind)?;
    if document.devices.is_empty() {
        return Err(SpecError::NoDevices);
    }
    check_edits("containerEdits", &document.container_edits)?;
    for (index, device) in document.devices.iter().enumerate() {
        let at = format!("devices[{index}]");
        name::check_device(&device.name)
            .map_err(|error| FieldError::Name(error).at(format!("{at}.name")))?;
        let mut before = document.devices[..index].iter();
        if before.any(|other| other.name == device.name) {
            return Err(FieldError::Duplicate(device.name.clone()).at(format!("{at}.name")));
        }
        if device.container_edits == ContainerEdits::default() {
            return Err(FieldError::Empty.at(format!("{at}.containerEdits")));
        }
        check_edits(&format!("{at}.containerEdits"), &device.container_edits)?;
    }
    Ok(())
}

fn check_edits(at: &str, edits: &ContainerEdits) -> Result<(), SpecError> {
    for (index, one) in edits.env.iter().enumerate() {
        let named = one
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty());
        if !named || one.contains('\0') {
            return Err(FieldError::Variable(one.clone()).at(format!("{at}.env[{index}]")));
        }
    }
    for (index, node) in edits.device_nodes.iter().enumerate() {
        let at = format!("{at}.deviceNodes[{index}]");
        let paths = [Some(&node.path), node.host_path.as_ref()];
        for path in paths.into_iter().flatten() {
            if !path.is_absolute() {
                return Err(FieldError::RelativePath(path.clone()).at(at));
            }
        }
        if !matches!(node.kind.as_str(), "" | "b" | "c" | "u" | "p") {
            return Err(FieldError::NodeType(node.kind.clone()).at(format!("{at}.type")));
        }
        if node.permissions.chars().any(|one| !"rwm".contains(one)) {
            let wrong = FieldError::Permissions(node.permissions.clone());
            return Err(wrong.at(format!("{at}.permissions")));
        }
    }
    for (index, mount) in edits.mounts.iter().enumerate() {
        let at = format!("{at}.mounts[{index}]");
        if !mount.container_path.is_absolute() {
            let wrong = FieldError::RelativePath(mount.container_path.clone());
            return Err(wrong.at(format!("{at}.containerPath")));
        }
        if mount.host_path.as_os_str().is_empty() {
            return Err(FieldError::Empty.at(format!("{at}.hostPath")));
        }
    }
    for (index, hook) in edits.hooks.iter().enumerate() {
        if !HOOKS.contains(&hook.hook_name.as_str()) {
            let wrong = FieldError::HookName(hook.hook_name.clone());
            return Err(wrong.at(format!("{at}.hooks[{index}].hookName")));
        }
    }
    Ok(())
}
