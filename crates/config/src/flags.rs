//! The kubelet's command-line flags: their table, what they mean in Rubelet, and the values that
//! were given.
//!
//! Source: `cmd/kubelet/app/options` of Kubernetes 1.36.

mod labels;
mod parse;
mod table;
mod value;

pub use parse::{FlagError, parse_flags};
pub use table::all as all_flags;
pub use value::FlagKind;

use crate::field::Effect;
use core::net::IpAddr;
use core::time::Duration;
use rubelet_base::duration::parse_go;
use serde_json::Value;
use std::collections::BTreeMap;

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Name without dashes.
    pub name: &'static str,
    /// The type of its values.
    pub kind: FlagKind,
    /// What it means in Rubelet.
    pub role: Role,
    /// Its help. Empty for a flag that sets a field: the field has the help.
    pub help: &'static str,
    /// Its default. Empty: none, or the field's default.
    pub default: &'static str,
}

/// What a flag means in Rubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sets the field of the configuration at this path.
    Field(&'static str),
    /// It has its own meaning.
    Own(Effect),
    /// It is accepted and has no effect, for this reason.
    Ignored(&'static str),
}

/// The kubelet's default data directory.
const ROOT_DIR: &str = "/var/lib/kubelet";
/// The kubelet's default certificate directory.
const CERT_DIR: &str = "/var/lib/kubelet/pki";

/// The kubelet's default of `--housekeeping-interval`.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(10);

/// The flags that were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    given: BTreeMap<&'static str, Value>,
}

impl Flags {
    /// Each flag that was given, with its value, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Flag, &Value)> {
        self.given
            .iter()
            .filter_map(|(name, value)| Some((table::find(name)?, value)))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.given
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    fn is_set(&self, name: &str) -> bool {
        self.given.get(name) == Some(&Value::Bool(true))
    }

    /// Path of the configuration file.
    #[must_use]
    pub fn config(&self) -> Option<&str> {
        self.text("config")
    }

    /// Path of the directory of drop-ins.
    #[must_use]
    pub fn config_dir(&self) -> Option<&str> {
        self.text("config-dir")
    }

    /// Path of the configuration of credential plugins, a file or a directory, and the directory of the
    /// plugins.
    #[must_use]
    pub fn image_credential_provider(&self) -> (Option<&str>, Option<&str>) {
        (
            self.text("image-credential-provider-config"),
            self.text("image-credential-provider-bin-dir"),
        )
    }

    /// Directory of the kubelet's data.
    #[must_use]
    pub fn root_dir(&self) -> &str {
        self.text("root-dir").unwrap_or(ROOT_DIR)
    }

    /// Directory of the kubelet's certificates.
    #[must_use]
    pub fn cert_dir(&self) -> &str {
        self.text("cert-dir").unwrap_or(CERT_DIR)
    }

    /// Path of the kubeconfig. With it the machine is a node of a cluster.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<&str> {
        self.text("kubeconfig")
    }

    /// Path of the kubeconfig for requesting the first certificate.
    #[must_use]
    pub fn bootstrap_kubeconfig(&self) -> Option<&str> {
        self.text("bootstrap-kubeconfig")
    }

    /// Whether an external cloud provider manages the node.
    #[must_use]
    pub fn cloud_is_external(&self) -> bool {
        self.text("cloud-provider") == Some("external")
    }

    /// Name of the node instead of the machine's host name.
    #[must_use]
    pub fn hostname_override(&self) -> Option<&str> {
        self.text("hostname-override")
    }

    /// Addresses of the node: none, one, or one of each family.
    #[must_use]
    pub fn node_ips(&self) -> Vec<IpAddr> {
        let text = self.text("node-ip").unwrap_or_default();
        text.split(',')
            .filter_map(|address| address.trim().parse().ok())
            .collect()
    }

    /// Labels for the Node object.
    #[must_use]
    pub fn node_labels(&self) -> BTreeMap<String, String> {
        let labels = self.given.get("node-labels").and_then(Value::as_object);
        let pairs = labels.into_iter().flatten();
        pairs
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    }

    /// Verbosity of the log, if it was given.
    #[must_use]
    pub fn verbosity(&self) -> Option<u32> {
        self.given
            .get("v")
            .and_then(Value::as_u64)
            .and_then(|level| u32::try_from(level).ok())
    }

    /// Verbosity of single source files: pattern and level.
    #[must_use]
    pub fn vmodule(&self) -> Vec<(String, u32)> {
        let items = self
            .given
            .get("vmodule")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        items
            .filter_map(|item| {
                let pattern = item.get("filePattern")?.as_str()?.to_owned();
                let level = u32::try_from(item.get("verbosity")?.as_u64()?).ok()?;
                Some((pattern, level))
            })
            .collect()
    }

    /// Whether containers without a seccomp profile get the runtime's default profile.
    #[must_use]
    pub fn seccomp_default(&self) -> bool {
        self.is_set("seccomp-default")
    }

    /// How old the statistics of containers may be.
    #[must_use]
    pub fn housekeeping_interval(&self) -> Duration {
        let given = self.text("housekeeping-interval");
        given
            .and_then(|text| parse_go(text).ok())
            .unwrap_or(HOUSEKEEPING_INTERVAL)
    }

    /// The name of the cgroup of the runtime, if it is given.
    #[must_use]
    pub fn runtime_cgroups(&self) -> Option<&str> {
        self.text("runtime-cgroups")
    }

    /// Whether eviction thresholds are left out of the node's allocatable resources.
    #[must_use]
    pub fn allocatable_ignores_eviction(&self) -> bool {
        self.is_set("experimental-allocatable-ignore-eviction")
    }

    /// File that is locked while the agent runs.
    #[must_use]
    pub fn lock_file(&self) -> Option<&str> {
        self.text("lock-file")
    }

    /// Whether the agent exits when another process opens the lock file.
    #[must_use]
    pub fn exit_on_lock_contention(&self) -> bool {
        self.is_set("exit-on-lock-contention")
    }

    /// Whether help was requested.
    #[must_use]
    pub fn help(&self) -> bool {
        self.is_set("help")
    }

    /// Whether the version was requested.
    #[must_use]
    pub fn version(&self) -> bool {
        self.text("version").is_some_and(|text| text != "false")
    }
}
