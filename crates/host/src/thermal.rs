//! Directories of sysfs with a processor's throttling counters.

use std::{fs, path::Path};

/// `thermal_throttle` of each processor that has one, as absolute paths in the order of CPU
/// numbers. `root` is the machine's `/`.
///
/// The kernel has these directories for Intel processors that are online. Their counters and times
/// let a container observe the load of others on the machine, so the kubelet masks them, and looks
/// for existing ones in the same way (`ConvertToRuntimeMaskedPaths` of release 1.34 and later).
#[must_use]
pub fn thermal_throttle(root: &Path) -> Vec<String> {
    const CPUS: &str = "sys/devices/system/cpu";
    let entries = fs::read_dir(root.join(CPUS)).into_iter().flatten();
    let mut numbers: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("cpu")?
                .parse()
                .ok()
        })
        .collect();
    numbers.sort_unstable();
    let paths = numbers
        .into_iter()
        .map(|number| format!("{CPUS}/cpu{number}/thermal_throttle"));
    paths
        .filter(|path| root.join(path).exists())
        .map(|path| format!("/{path}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_that_has_the_directory_is_named_in_order() {
        let root = tempfile::tempdir().unwrap();
        assert!(thermal_throttle(root.path()).is_empty(), "no sysfs");
        let cpus = root.path().join("sys/devices/system/cpu");
        for with in ["cpu0", "cpu2", "cpu10", "cpufreq", "power"] {
            fs::create_dir_all(cpus.join(with).join("thermal_throttle")).unwrap();
        }
        fs::create_dir_all(cpus.join("cpu1/topology")).unwrap();
        fs::write(cpus.join("possible"), "0-63\n").unwrap();
        assert_eq!(
            thermal_throttle(root.path()),
            [0, 2, 10].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle"))
        );
    }
}
