//! Registry configuration (`hosts.toml`).

use super::{Finding, Severity};
use crate::RuntimeSettings;

/// Registry settings that pulls can't use.
pub(super) fn directories(settings: &RuntimeSettings) -> Vec<Finding> {
    let faults = rubelet_images::hosts::check(&settings.images.hosts_dirs);
    let finding = |error: String| {
        Finding::new(
            Severity::Warning,
            format!("the settings of a registry cannot be used: {error}"),
            "pulls of images from that registry fail; `_default` is for all registries without settings of their own",
            "correct the file, or remove the registry's directory; no restart is needed",
        )
    };
    faults.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_mistake_is_reported_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let mut settings =
            RuntimeSettings::new(directory.path().join("root"), directory.path().join("run"));
        settings.images.hosts_dirs = vec![directory.path().join("certs.d")];
        assert_eq!(directories(&settings), []);
        let registry = directory.path().join("certs.d/r.test");
        std::fs::create_dir_all(&registry).unwrap();
        std::fs::write(registry.join("hosts.toml"), "server = 1\n").unwrap();
        let found = directories(&settings);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning);
        let what = &found[0].what;
        assert!(
            what.contains("certs.d/r.test/hosts.toml:1: server"),
            "{what}"
        );
    }
}
