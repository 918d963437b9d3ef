//! Information about the build. The build script passes it as environment variables of the
//! compiler.

use jiff::Timestamp;
use rubelet_node_state::metrics::{BuildLabels, FactMetrics};
use rubelet_server::{KUBERNETES_MAJOR, KUBERNETES_MINOR, git_version, platform};
use serde_json::{Value, json};

/// The version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Hash of the commit, or `unknown`.
pub(crate) const COMMIT: &str = env!("RUBELET_BUILD_COMMIT");

/// The whole document, with kubectl's names where kubectl has one. `commitDate` is null if it is
/// unknown.
pub(crate) fn document() -> Value {
    let list = |text: &'static str| text.split(',').filter(|word| !word.is_empty());
    let libraries: Vec<Value> = list(env!("RUBELET_BUILD_LIBRARIES"))
        .filter_map(|library| library.split_once(' '))
        .map(|(name, version)| json!({ "name": name, "version": version }))
        .collect();
    json!({
        "rubelet": VERSION,
        "gitCommit": COMMIT,
        "gitTreeState": env!("RUBELET_BUILD_TREE_STATE"),
        "commitDate": date(env!("RUBELET_BUILD_COMMIT_TIME")),
        "rustcVersion": env!("RUBELET_BUILD_RUSTC_VERSION"),
        "target": env!("RUBELET_BUILD_TARGET"),
        "profile": env!("RUBELET_BUILD_PROFILE"),
        "features": list(env!("RUBELET_BUILD_FEATURES")).collect::<Vec<_>>(),
        "libraries": libraries,
    })
}

/// Shows in the metrics how the program was built.
pub(crate) fn show(metrics: &FactMetrics) {
    metrics.set_build(&BuildLabels {
        major: KUBERNETES_MAJOR,
        minor: KUBERNETES_MINOR,
        git_version: &git_version(),
        git_commit: COMMIT,
        git_tree_state: env!("RUBELET_BUILD_TREE_STATE"),
        build_date: &date(env!("RUBELET_BUILD_COMMIT_TIME")).unwrap_or_default(),
        compiler: env!("RUBELET_BUILD_RUSTC_VERSION"),
        platform: &platform(),
    });
}

/// Seconds since 1970 as a date; 0 stands for an unknown time.
fn date(seconds: &str) -> Option<String> {
    let seconds = seconds.parse().ok().filter(|seconds| *seconds != 0)?;
    Some(Timestamp::from_second(seconds).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_a_commit_is_in_utc() {
        assert_eq!(date("1767225600").as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(date("0"), None);
    }

    #[test]
    fn the_document_has_these_keys() {
        let document = document();
        let keys: Vec<_> = document.as_object().unwrap().keys().collect();
        let mut expected = [
            "rubelet",
            "gitCommit",
            "gitTreeState",
            "commitDate",
            "rustcVersion",
            "target",
            "profile",
            "features",
            "libraries",
        ];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        let rustc = document["rustcVersion"].as_str().unwrap();
        assert!(rustc.starts_with("rustc 1."), "{rustc}");
    }

    #[test]
    fn libraries_are_those_of_the_lock_file_and_no_tool_of_a_build_or_test() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let lock = std::fs::read_to_string(root).unwrap();
        let document = document();
        let libraries = document["libraries"].as_array().unwrap();
        let names: Vec<_> = libraries
            .iter()
            .map(|library| library["name"].as_str().unwrap())
            .collect();
        for library in libraries {
            let entry = format!(
                "[[package]]\nname = {}\nversion = {}\n",
                library["name"], library["version"]
            );
            assert!(lock.contains(&entry), "{entry}");
        }
        for linked in [
            "rubelet-base",
            "rubelet-container",
            "aws-lc-sys",
            "rustls",
            "tokio",
        ] {
            assert!(names.contains(&linked), "{linked}");
        }
        for unlinked in [
            "proptest",
            "rubelet-sim",
            "xtask",
            "cc",
            "serde_derive",
            "windows-sys",
        ] {
            assert!(!names.contains(&unlinked), "{unlinked}");
        }
    }
}
