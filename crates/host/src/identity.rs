//! The identity of the machine's system, and the security modules that its kernel enforces.

use std::{fs, path::Path};

/// Files with the hardware's identifier, by architecture; the first existing one is used.
const SYSTEM_UUID: [&str; 4] = [
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/system-id",
    "proc/device-tree/vm,uuid",
    "etc/machine-id",
];

/// Display name of the operating system, such as `Debian GNU/Linux 12 (bookworm)`: the
/// `PRETTY_NAME` of `os-release`. `Linux` if there is none.
#[must_use]
pub fn os_image(root: &Path) -> String {
    let text = ["etc/os-release", "usr/lib/os-release"]
        .iter()
        .find_map(|file| fs::read_to_string(root.join(file)).ok())
        .unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches(['"', '\'']));
    match name {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "Linux".to_owned(),
    }
}

/// Identifier of the hardware. Needs root on most machines; without one, the identifier of the
/// installation.
#[must_use]
pub fn system_uuid(root: &Path) -> Option<String> {
    SYSTEM_UUID
        .iter()
        .filter_map(|file| fs::read_to_string(root.join(file)).ok())
        .map(|id| id.trim_matches(['\0', '\n', ' ']).to_owned())
        .find(|id| !id.is_empty())
}

/// Whether the kernel enforces AppArmor profiles.
#[must_use]
pub fn has_apparmor(root: &Path) -> bool {
    let enabled = fs::read_to_string(root.join("sys/module/apparmor/parameters/enabled"));
    root.join("sys/kernel/security/apparmor").exists()
        && enabled.is_ok_and(|text| text.starts_with('Y'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_system_has_the_name_it_gives_itself() {
        for (files, expected) in [
            (&[][..], "Linux"),
            (&[("etc/os-release", "NAME=x\n")], "Linux"),
            (
                &[(
                    "etc/os-release",
                    "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n",
                )],
                "Debian GNU/Linux 12",
            ),
            (&[("usr/lib/os-release", "PRETTY_NAME=Clear\n")], "Clear"),
        ] {
            assert_eq!(os_image(fake(files).path()), expected);
        }
    }

    #[test]
    fn hardware_has_its_identifier() {
        for (files, expected) in [
            (&[][..], None),
            (&[("sys/class/dmi/id/product_uuid", "AB-1\n")], Some("AB-1")),
            (&[("proc/device-tree/vm,uuid", "ab-2\0")], Some("ab-2")),
            (&[("etc/machine-id", "m\n")], Some("m")),
        ] {
            assert_eq!(system_uuid(fake(files).path()).as_deref(), expected);
        }
    }

    #[test]
    fn apparmor_counts_when_it_is_switched_on() {
        let profiles = ("sys/kernel/security/apparmor/profiles", "");
        let switch = |text| ("sys/module/apparmor/parameters/enabled", text);
        assert!(has_apparmor(fake(&[profiles, switch("Y\n")]).path()));
        assert!(!has_apparmor(fake(&[profiles, switch("N\n")]).path()));
        assert!(!has_apparmor(fake(&[switch("Y\n")]).path()));
        assert!(!has_apparmor(fake(&[]).path()));
    }
}
