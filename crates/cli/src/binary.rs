//! Facts that commands need about the program that they are part of.

use rubelet_config::EmbeddedRuntime;
use rubelet_runtime::RuntimeSettings;
use serde_json::Value;

/// Facts that commands need about the program that they are part of.
#[derive(Debug, Clone, Copy)]
pub struct Binary {
    /// The build of the program: the document `clientVersion` of `rubelet version -o json`.
    pub build_info: fn() -> Value,
    /// The settings of the embedded runtime with these options and this cgroup driver.
    pub runtime_settings: fn(&EmbeddedRuntime, &str) -> anyhow::Result<RuntimeSettings>,
}
