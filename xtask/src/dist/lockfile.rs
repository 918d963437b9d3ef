//! Checksums of packages, from Cargo.lock.

use std::collections::BTreeMap;

/// Name and version of a package.
pub(super) type Id = (String, String);

/// The checksum of each package; none for those of the workspace.
pub(super) fn checksums(lock: &str) -> BTreeMap<Id, Option<String>> {
    lock.split("[[package]]\n")
        .skip(1)
        .filter_map(|package| {
            let value = |key: &str| {
                package.lines().find_map(|line| {
                    let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
                    Some(value.strip_suffix('"')?.to_owned())
                })
            };
            Some(((value("name")?, value("version")?), value("checksum")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_with_and_without_checksum() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    source = \"registry\"\nchecksum = \"00ff\"\ndependencies = [\n \"b\",\n]\n\n\
                    [[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        let found = checksums(lock);
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(found[&id("a", "1.0.0")].as_deref(), Some("00ff"));
        assert_eq!(found[&id("b", "2.0.0")], None);
        assert_eq!(found.len(), 2);
    }
}
