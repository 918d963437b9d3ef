//! The configuration of an image: its author's defaults for containers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::nullable::nullable;

/// `config` of an image's configuration file. Docker's and OCI's formats are the same here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ImageConfig {
    /// User, `user[:group]`, each a name or a number; empty is root.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub user: String,
    /// Environment, each `NAME=value`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The program.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Arguments, or the program where there is no entry point.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// Working directory; empty is `/`.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub working_dir: String,
    /// Paths that need a volume; the values are ignored.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub volumes: BTreeMap<String, Empty>,
    /// Labels.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    /// Signal that stops the program, as a name or a number; empty is `SIGTERM`.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub stop_signal: String,
    /// Ports the program listens on, as `80/tcp`. Documentation only.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub exposed_ports: BTreeMap<String, Empty>,
}

/// A value without meaning: an object whose content is ignored, or `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Empty;

impl Serialize for Empty {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        to.serialize_map(Some(0))?.end()
    }
}

impl<'de> Deserialize<'de> for Empty {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(from).map(|_| Self)
    }
}

/// The configuration file of an image; its digest is the image's identifier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageFile {
    /// Build time, in the format of RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Architecture, in Go's names: `amd64`, `arm64`.
    #[serde(deserialize_with = "nullable")]
    pub architecture: String,
    /// Variant of the architecture, such as `v8`.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub variant: String,
    /// Operating system, in Go's names.
    #[serde(deserialize_with = "nullable")]
    pub os: String,
    /// Its author's defaults for containers.
    #[serde(deserialize_with = "nullable")]
    pub config: ImageConfig,
    /// The layers.
    pub rootfs: RootFs,
}

/// The layers of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of the uncompressed layers, the lowest first.
    #[serde(deserialize_with = "nullable")]
    pub diff_ids: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_docker_writes_is_read_with_its_nulls_and_extras() {
        let text = r#"{"architecture":"amd64","os":"linux","config":{"Hostname":"","User":"1000:2000","AttachStdin":false,
            "ExposedPorts":{"80/tcp":{}},"Env":["PATH=/bin"],"Cmd":null,"Image":"sha256:1","Volumes":{"/data":{}},
            "WorkingDir":"","Entrypoint":["/app"],"OnBuild":null,"Labels":null,"StopSignal":"SIGQUIT"},
            "rootfs":{"type":"layers","diff_ids":["sha256:2"]},"history":[{"empty_layer":true}]}"#;
        let file: ImageFile = serde_json::from_str(text).unwrap();
        assert_eq!(file.config.user, "1000:2000");
        assert_eq!(file.config.entrypoint, ["/app"]);
        assert!(file.config.cmd.is_empty() && file.config.labels.is_empty());
        assert_eq!(file.config.volumes.keys().collect::<Vec<_>>(), ["/data"]);
        assert_eq!(file.config.stop_signal, "SIGQUIT");
        assert_eq!(file.rootfs.diff_ids, ["sha256:2"]);
    }

    #[test]
    fn an_image_without_configuration_has_an_empty_one() {
        for text in [r#"{"config":null}"#, "{}"] {
            let file: ImageFile = serde_json::from_str(text).unwrap();
            assert_eq!(file.config, ImageConfig::default());
        }
    }
}
