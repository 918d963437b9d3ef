//! Free space where the runtime writes.

use std::path::Path;

use rubelet_host::usage::{self, Usage};

use super::{Finding, Severity};
use crate::RuntimeSettings;

pub(super) fn directories(settings: &RuntimeSettings) -> Vec<Finding> {
    let directories = [
        (&*settings.root, "images, layers and records are kept there"),
        (
            &*settings.run,
            "sockets and bundles of running pods are kept there",
        ),
    ];
    directories
        .into_iter()
        .flat_map(|(dir, why)| {
            let Ok(found) = usage::file_system(existing(dir)) else {
                return Vec::new();
            };
            let bytes = low(found.bytes).then_some(("space", found.bytes));
            let inodes = low(found.inodes).then_some(("inodes", found.inodes));
            bytes
                .into_iter()
                .chain(inodes)
                .map(|(what, left)| finding(dir, what, left, why))
                .collect()
        })
        .collect()
}

/// The directory, or its closest parent that exists.
fn existing(dir: &Path) -> &Path {
    dir.ancestors()
        .find(|dir| dir.exists())
        .unwrap_or(Path::new("/"))
}

/// Less than 5 % left. File systems with dynamic inodes report no inode capacity.
fn low(usage: Usage) -> bool {
    usage.capacity > 0 && usage.available < usage.capacity / 20
}

fn finding(dir: &Path, what: &str, left: Usage, why: &str) -> Finding {
    let percent = left.available.saturating_mul(100) / left.capacity.max(1);
    let severity = if left.available == 0 {
        Severity::Error
    } else {
        Severity::Warning
    };
    Finding::new(
        severity,
        format!("{percent} % of the {what} of {} is left", dir.display()),
        why,
        "remove unused images (`rubelet image ls`), or free space",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_low_below_a_twentieth() {
        let usage = |available| Usage {
            available,
            capacity: 100,
        };
        assert!(low(usage(4)) && !low(usage(5)));
        assert!(!low(Usage::default()));
        let found = finding(Path::new("/x"), "space", usage(0), "why");
        assert_eq!(found.severity, Severity::Error);
        assert_eq!(found.what, "0 % of the space of /x is left");
    }
}
