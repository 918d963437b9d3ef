//! What commands need to know about the program that they are part of.

use rubelet_config::EmbeddedRuntime;
use rubelet_runtime::RuntimeSettings;
use serde_json::Value;

/// What commands need to know about the program that they are part of.
#[derive(Debug, Clone, Copy)]
pub struct Binary {
    /// How the program was built: the document `clientVersion` of `rubelet version -o json`.
    pub build_info: fn() -> Value,
    /// The settings of the embedded runtime with these options and this cgroup driver.
    pub runtime_settings: fn(&EmbeddedRuntime, &str) -> anyhow::Result<RuntimeSettings>,
}
