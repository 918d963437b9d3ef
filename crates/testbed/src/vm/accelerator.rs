//! What executes the instructions of a guest.

use std::fs::{File, read_to_string};
use std::time::Duration;

/// Timeout of the boot with the processor's own virtualization, which takes a second or two. It may be offered and not
/// work, as within another virtual machine.
const KVM_BOOT_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of the boot in the emulator; two to four seconds are usual, on a busy host a minute.
const EMULATED_BOOT_TIMEOUT: Duration = Duration::from_secs(180);

/// What executes the instructions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accelerator {
    /// The processor.
    Kvm,
    /// The emulator.
    Emulated,
}

impl Accelerator {
    /// Whether this machine offers KVM.
    pub(super) fn has_kvm() -> bool {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let opens = || File::options().read(true).write(true).open("/dev/kvm");
        virtualizes(&cpuinfo) && opens().is_ok()
    }

    /// Arguments for QEMU.
    pub(super) fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
            // The emulator copies memory byte by byte where a processor has fast string moves, which kernel and
            // libc then use for all.
            Self::Emulated => ["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm"],
        }
    }

    /// How long the boot may take.
    pub(super) fn boot_timeout(self) -> Duration {
        match self {
            Self::Kvm => KVM_BOOT_TIMEOUT,
            Self::Emulated => EMULATED_BOOT_TIMEOUT,
        }
    }
}

/// Whether the processors can run guests. The device alone does not show it.
fn virtualizes(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter_map(|line| {
        let (name, values) = line.split_once(':')?;
        (name.trim_end() == "flags").then_some(values)
    });
    flags.any(|values| {
        let mut values = values.split_whitespace();
        values.any(|flag| flag == "vmx" || flag == "svm")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_with_virtualization_is_found() {
        assert!(virtualizes(
            "processor\t: 0\nflags\t\t: fpu vmx sse\nbugs\t\t: x\n"
        ));
        assert!(virtualizes("flags\t\t: svm\n"));
        assert!(!virtualizes("flags\t\t: fpu svm_lock\nvmx flags\t: vmx\n"));
    }
}
