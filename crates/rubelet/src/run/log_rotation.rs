//! From the configuration to the rotation of container logs.

use anyhow::anyhow;
use rubelet_api::quantity::Quantity;
use rubelet_config::KubeletConfiguration;
use rubelet_kubelet::log_rotation::{LogRotationSettings, RotationPolicy};

/// When logs are rotated; a negative `containerLogMaxSize` means never, as with the kubelet.
pub(super) fn settings(
    config: &KubeletConfiguration,
) -> anyhow::Result<Option<LogRotationSettings>> {
    let size = &config.container_log_max_size;
    if size.starts_with('-') {
        return Ok(None);
    }
    let max_bytes = bytes("containerLogMaxSize", size)?;
    Ok(Some(LogRotationSettings {
        policy: RotationPolicy {
            max_bytes,
            max_files: usize::try_from(config.container_log_max_files).unwrap_or(2),
        },
        interval: config.container_log_monitor_interval,
        workers: usize::try_from(config.container_log_max_workers).unwrap_or(1),
    }))
}

/// The bytes that the text of a field means.
pub(super) fn bytes(field: &str, text: &str) -> anyhow::Result<u64> {
    let parsed = Quantity::parse(text).map(Quantity::units);
    parsed.map_err(|error| anyhow!("{field}: {text:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: &str) -> Option<u64> {
        let config = KubeletConfiguration {
            container_log_max_size: size.to_owned(),
            ..KubeletConfiguration::default()
        };
        let settings = settings(&config).unwrap();
        settings.map(|settings| settings.policy.max_bytes)
    }

    #[test]
    fn a_negative_size_means_never() {
        assert_eq!(of("10Mi"), Some(10 << 20));
        assert_eq!(of("1k"), Some(1000));
        assert_eq!(of("-1"), None);
    }
}
