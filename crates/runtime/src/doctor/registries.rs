//! Folders that say where images come from.

use super::{Finding, Severity};
use crate::RuntimeSettings;

/// What pulls can't use of them.
pub(super) fn folders(settings: &RuntimeSettings) -> Vec<Finding> {
    let faults = rubelet_images::hosts::faults(&settings.images.hosts_dirs);
    let finding = |fault: String| {
        Finding::new(
            Severity::Warning,
            format!("the settings of a registry can't be used: {fault}"),
            "pulls of images from that registry fail; those of `_default` are for all that have no settings of their own",
            "correct the file, or remove the registry's folder; no restart is needed",
        )
    };
    faults.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_mistake_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings =
            RuntimeSettings::new(folder.path().join("root"), folder.path().join("run"));
        settings.images.hosts_dirs = vec![folder.path().join("certs.d")];
        assert_eq!(folders(&settings), []);
        let registry = folder.path().join("certs.d/r.test");
        std::fs::create_dir_all(&registry).unwrap();
        std::fs::write(registry.join("hosts.toml"), "server = 1\n").unwrap();
        let found = folders(&settings);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning);
        let what = &found[0].what;
        assert!(
            what.contains("certs.d/r.test/hosts.toml:1: server"),
            "{what}"
        );
    }
}
