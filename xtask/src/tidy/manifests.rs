//! Each crate inherits lints, version and licence from the workspace.

use super::Finding;

/// Required tables and keys of a crate's manifest, as they are written.
const INHERITED: [(&str, &str); 5] = [
    ("[lints]\nworkspace = true", "its lints"),
    ("version.workspace = true", "its version"),
    ("edition.workspace = true", "its edition"),
    ("rust-version.workspace = true", "its Rust version"),
    ("license.workspace = true", "its licence"),
];
/// The crates that may contain `unsafe`, and so define their own lints.
const OWN_LINTS: [&str; 3] = [
    "crates/host/Cargo.toml",
    "crates/container/Cargo.toml",
    "crates/shim/Cargo.toml",
];
const INHERIT: &str = "copy the line from another crate's Cargo.toml";

/// Keys that the manifest at `path` does not inherit from the workspace.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with("/Cargo.toml") {
        return Vec::new();
    }
    INHERITED
        .iter()
        .filter(|(wanted, _)| !text.contains(wanted))
        .filter(|(wanted, _)| !OWN_LINTS.contains(&path) || !wanted.starts_with("[lints]"))
        .map(|(_, what)| Finding {
            file: path.to_owned(),
            line: 0,
            rule: format!("the crate does not inherit {what} from the workspace"),
            remedy: INHERIT,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_a_manifest_does_not_inherit_is_reported() {
        let whole: String = INHERITED
            .iter()
            .map(|(line, _)| format!("{line}\n"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(check("crates/a/Cargo.toml", &whole), []);
        let partial = whole.replace("[lints]\nworkspace = true", "");
        let found = check("crates/a/Cargo.toml", &partial);
        assert_eq!(
            found[0].rule,
            "the crate does not inherit its lints from the workspace"
        );
        assert_eq!(check(OWN_LINTS[0], &partial), []);
        assert_eq!(check("Cargo.toml", ""), []);
    }
}
