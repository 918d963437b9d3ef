//! What executes the instructions of a guest.

use std::fs::{File, read_to_string};
use std::path::Path;
use std::time::Duration;

/// Timeout of the boot with the processor's own virtualization, which takes a second or two. It may be offered and not
/// work, as within another virtual machine.
const KVM_BOOT_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of the boot in the emulator; two to four seconds are usual, on a busy host a minute.
const EMULATED_BOOT_TIMEOUT: Duration = Duration::from_secs(180);

/// Exists where the frequency of the processor changes.
const SCALING: &str = "/sys/devices/system/cpu/cpu0/cpufreq";

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
        let opens = || File::options().read(true).write(true).open("/dev/kvm");
        virtualizes(&cpuinfo()) && opens().is_ok()
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

    /// Options for the guest's kernel.
    pub(super) fn kernel_options(self) -> String {
        // The emulator shows its host's counter of cycles. To find out how fast it counts, a guest compares it
        // with an emulated timer, and on a busy host was wrong by a factor of twenty: then its minutes are seconds.
        let is_known = self == Self::Emulated && !Path::new(SCALING).exists();
        let khz = is_known.then(|| counter_khz(&cpuinfo())).flatten();
        khz.map_or_else(String::new, |khz| format!("tsc_early_khz={khz}"))
    }

    /// How long the boot may take.
    pub(super) fn boot_timeout(self) -> Duration {
        match self {
            Self::Kvm => KVM_BOOT_TIMEOUT,
            Self::Emulated => EMULATED_BOOT_TIMEOUT,
        }
    }
}

fn cpuinfo() -> String {
    read_to_string("/proc/cpuinfo").unwrap_or_default()
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

/// How fast the counter of cycles counts, in kHz, on a processor that always has the same frequency.
fn counter_khz(cpuinfo: &str) -> Option<u64> {
    let mut values = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = values.find(|(name, _)| name.trim_end() == "cpu MHz")?;
    let (whole, thousandths) = value.trim().split_once('.')?;
    let khz: u64 = format!("{whole}{thousandths:0<3}").parse().ok()?;
    (thousandths.len() <= 3 && khz > 0).then_some(khz)
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
    #[test]
    fn the_frequency_of_the_counter_is_read_to_the_thousandth() {
        let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 2596.132\nflags\t\t: tsc\n";
        assert_eq!(counter_khz(cpuinfo), Some(2_596_132));
        assert_eq!(counter_khz("cpu MHz\t\t: 2000.5\n"), Some(2_000_500));
        assert_eq!(counter_khz("cpu MHz\t\t: unknown\n"), None);
        assert_eq!(counter_khz(""), None);
    }
}
