//! File names that are never manifests: hidden files, and copies that editors and package tools
//! leave beside the real one.

use crate::status::Reason;

/// Suffixes of copies, in lower case.
const COPIES: [&str; 12] = [
    "~", ".bak", ".old", ".orig", ".rej", ".rpmnew", ".rpmorig", ".rpmsave", ".save", ".swp",
    ".swx", ".tmp",
];

/// Why a file of this name is skipped; `None` for a manifest.
pub(crate) fn skipped(name: &str) -> Option<Reason> {
    if name.starts_with('.') {
        return Some(Reason::Hidden);
    }
    let lower = name.to_ascii_lowercase();
    let package = [".dpkg-", ".ucf-"].iter().any(|mark| {
        let end = lower.rsplit_once(mark).map(|(_, end)| end);
        end.is_some_and(|end| !end.is_empty() && end.bytes().all(|b| b.is_ascii_lowercase()))
    });
    let copy = COPIES.iter().any(|ending| lower.ends_with(ending))
        || package
        || (name.len() > 1 && name.starts_with('#') && name.ends_with('#'))
        // The name with which vim tests whether it may write here.
        || name == "4913";
    copy.then_some(Reason::BackupFile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_manifests_are_not_manifests() {
        for name in [
            "web.yaml~",
            "web.yaml.bak",
            "web.yaml.BAK",
            "web.yaml.swp",
            "web.yaml.swx",
            "web.yaml.tmp",
            "web.yaml.orig",
            "web.yaml.rej",
            "web.yaml.dpkg-old",
            "web.yaml.dpkg-dist",
            "web.yaml.ucf-new",
            "web.yaml.rpmsave",
            "web.yaml.rpmnew",
            "#web.yaml#",
            "4913",
            "web.yaml.old",
            "web.yaml.save",
        ] {
            assert_eq!(skipped(name), Some(Reason::BackupFile), "{name}");
        }
        for name in [".web.yaml", ".web.yaml.swp", "..data", ".#web.yaml"] {
            assert_eq!(skipped(name), Some(Reason::Hidden), "{name}");
        }
    }

    #[test]
    fn every_other_name_is_a_manifest() {
        for name in [
            "web.yaml",
            "web",
            "web.json",
            "web.bak.yaml",
            "#",
            "49130",
            "a.dpkg-1.yaml",
            "tmp",
        ] {
            assert_eq!(skipped(name), None, "{name}");
        }
    }
}
