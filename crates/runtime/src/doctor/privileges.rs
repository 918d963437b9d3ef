//! Capabilities of this process, and programs it needs.

use std::{fs, path::Path};

use super::{Finding, Severity};
use crate::{RuntimeSettings, executable::is_executable};

/// Capabilities by their number in the kernel's `capability.h`, and what they are needed for.
const NEEDED: [(u32, &str, &str); 12] = [
    (0, "CAP_CHOWN", "files of images belong to many users"),
    (
        1,
        "CAP_DAC_OVERRIDE",
        "files of images belong to many users",
    ),
    (3, "CAP_FOWNER", "files of images belong to many users"),
    (5, "CAP_KILL", "containers run as many users"),
    (6, "CAP_SETGID", "containers run as many users"),
    (7, "CAP_SETUID", "containers run as many users"),
    (
        8,
        "CAP_SETPCAP",
        "containers get fewer capabilities than the runtime has",
    ),
    (12, "CAP_NET_ADMIN", "pods have their own networks"),
    (18, "CAP_SYS_CHROOT", "containers have their own root"),
    (19, "CAP_SYS_PTRACE", "namespaces of containers are opened"),
    (21, "CAP_SYS_ADMIN", "namespaces and mounts are made"),
    (27, "CAP_MKNOD", "containers have device nodes"),
];

/// Without these, single features don't work.
const USEFUL: [(u32, &str, &str); 2] = [
    (
        24,
        "CAP_SYS_RESOURCE",
        "oom_score_adj cannot be lowered and hard limits cannot be raised",
    ),
    (
        31,
        "CAP_SETFCAP",
        "file capabilities in images cannot be set",
    ),
];

pub(super) fn capabilities(root: &Path) -> Vec<Finding> {
    let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let Some(effective) = effective else {
        return Vec::new();
    };
    let missing = |number: &u32| effective & (1 << number) == 0;
    let needed = NEEDED.iter().filter(|(number, ..)| missing(number));
    let useful = USEFUL.iter().filter(|(number, ..)| missing(number));
    needed
        .map(|one| (Severity::Error, one))
        .chain(useful.map(|one| (Severity::Warning, one)))
        .map(|(severity, (_, name, why))| {
            Finding::new(
                severity,
                format!("the capability {name} is missing"),
                *why,
                "run as root with all capabilities (in a unit file: no CapabilityBoundingSet=)",
            )
        })
        .collect()
}

/// Runtime handlers whose program is missing.
pub(super) fn handlers(settings: &RuntimeSettings) -> Vec<Finding> {
    settings
        .handlers
        .iter()
        .filter(|(_, binary)| !is_executable(binary))
        .map(|(name, binary)| {
            Finding::new(
                Severity::Warning,
                format!("{} is not an executable file", binary.display()),
                format!("pods of the runtime handler `{name}` are refused"),
                format!("install {name}, or remove the handler from the configuration"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_capability_is_named() {
        let root = tempfile::Builder::new()
            .prefix("rbt-runtime-")
            .tempdir()
            .unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let write = |caps: u64| {
            let text = format!("Name:\tx\nCapEff:\t{caps:016x}\n");
            fs::write(root.path().join("proc/self/status"), text).unwrap();
        };
        write(u64::MAX);
        assert_eq!(capabilities(root.path()), []);
        write(!(1 << 21) & !(1 << 24));
        let found = capabilities(root.path());
        assert_eq!(found.len(), 2);
        assert!(found[0].severity == Severity::Error && found[0].what.contains("CAP_SYS_ADMIN"));
        assert!(found[1].severity == Severity::Warning);
    }
}
