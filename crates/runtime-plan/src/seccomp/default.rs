//! The default seccomp profile: all calls except dangerous ones, some of which are allowed with the
//! capability that the kernel requires for them.

use std::collections::BTreeSet;

use rubelet_oci::{Action, ArgRule, Operator, Seccomp, SyscallRule};

use super::{Arch, numbers};
use crate::capability::CapSet;

/// Calls that no container may use: they affect the kernel as a whole, or have often been used to
/// escape from containers.
const NEVER: [&str; 19] = [
    // Keys are not namespaced.
    "add_key",
    "keyctl",
    "request_key",
    // Another kernel, another swap.
    "kexec_file_load",
    "kexec_load",
    "swapoff",
    "swapon",
    // A second way to make most calls, past this filter.
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    // Memory of others, or of the kernel at moments of the caller's choice.
    "migrate_pages",
    "move_pages",
    "userfaultfd",
    "vm86",
    "vm86old",
    // Changes the root of all processes.
    "pivot_root",
    // Left over from older kernels; what no kernel has any more fails by itself.
    "sysfs",
    "uselib",
    "ustat",
];

/// Calls that need a capability, by that capability. A call with several is allowed by any of them.
const NEEDS: [(&str, &[&str]); 14] = [
    ("BPF", &["bpf"]),
    ("DAC_READ_SEARCH", &["open_by_handle_at"]),
    ("PERFMON", &["perf_event_open"]),
    (
        "SYS_ADMIN",
        &[
            "bpf",
            "clone",
            "clone3",
            "fanotify_init",
            "fsconfig",
            "fsmount",
            "fsopen",
            "fspick",
            "listns",
            "lookup_dcookie",
            "mount",
            "mount_setattr",
            "move_mount",
            "open_tree",
            "open_tree_attr",
            "perf_event_open",
            "quotactl",
            "quotactl_fd",
            "setdomainname",
            "sethostname",
            "setns",
            "syslog",
            "umount",
            "umount2",
            "unshare",
        ],
    ),
    ("SYS_BOOT", &["reboot"]),
    ("SYS_CHROOT", &["chroot"]),
    (
        "SYS_MODULE",
        &["delete_module", "finit_module", "init_module"],
    ),
    (
        "SYS_NICE",
        &[
            "get_mempolicy",
            "mbind",
            "set_mempolicy",
            "set_mempolicy_home_node",
        ],
    ),
    ("SYS_PACCT", &["acct"]),
    ("SYS_PTRACE", &["kcmp", "pidfd_getfd", "process_madvise"]),
    ("SYS_RAWIO", &["ioperm", "iopl"]),
    (
        "SYS_TIME",
        &["clock_settime", "clock_settime64", "settimeofday", "stime"],
    ),
    ("SYS_TTY_CONFIG", &["vhangup"]),
    ("SYSLOG", &["syslog"]),
];

/// Calls that are allowed for some arguments only.
const SOME: [&str; 2] = ["personality", "socket"];

/// One call for all that is done with sockets, of 32-bit x86 only.
const SOCKETCALL: &str = "socketcall";

/// Personalities that change nothing but names and the layout of memory: Linux, Linux with 32 bits,
/// both with the release named as 2.6, and the question for the present one.
const PERSONALITIES: [u64; 5] = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Flags of `clone` that make namespaces.
const CLONE_NAMESPACES: u64 = 0x7e02_0000;
const ENOSYS: u32 = 38;

/// The treatment of `socketcall` of 32-bit x86 programs.
///
/// It makes a socket of a family that is behind a pointer, where no filter can look. moby denied the
/// call in 29.4.2, which broke the sockets of 32-bit programs that are linked with glibc, and left it
/// to AppArmor since 29.4.3; containerd allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Socketcall {
    /// It is allowed, because something else denies the families that `socket` is filtered for.
    Allowed,
    /// It does not exist (`ENOSYS`), as on a kernel without it: the filter is all there is.
    Absent,
}

/// The capabilities of a bounding set on which the default profile depends.
#[must_use]
pub fn deciding(capabilities: CapSet) -> CapSet {
    capabilities.intersection(CapSet::of(NEEDS.iter().map(|(capability, _)| *capability)))
}

/// The default profile for a container with that bounding set.
#[must_use]
pub fn runtime_default(capabilities: &CapSet, socketcall: Socketcall, arch: Arch) -> Seccomp {
    let groups = NEEDS.iter();
    let (open, closed): (Vec<_>, Vec<_>) =
        groups.partition(|(capability, _)| capabilities.has(capability));
    let calls = |groups: &[&'static (&str, &'static [&'static str])]| -> BTreeSet<&'static str> {
        groups
            .iter()
            .flat_map(|(_, calls)| calls.iter().copied())
            .collect()
    };
    let open = calls(&open);
    let mut closed: BTreeSet<&str> = calls(&closed).difference(&open).copied().collect();
    closed.extend(NEVER.iter().chain(&SOME));
    if socketcall == Socketcall::Absent {
        closed.insert(SOCKETCALL);
    }
    let names = numbers::names()
        .filter(|name| !closed.contains(name))
        .map(str::to_owned)
        .collect();
    let mut syscalls = vec![allow(names, Vec::new())];
    // No address family of hypervisors and of the kernel's ciphers, 40 and 38. Written as what is
    // allowed, in rules with one comparison each: runtimes interpret denials differently.
    for comparison in [
        compare(Operator::Less, 38, 0),
        compare(Operator::Equal, 39, 0),
        compare(Operator::Equal, 41, 0),
        compare(Operator::MaskedEqual, !1, 42),
        compare(Operator::MaskedEqual, !3, 44),
    ] {
        syscalls.push(allow(vec!["socket".to_owned()], vec![comparison]));
    }
    // Named, not left to the default: libseccomp makes rules for `socket` into rules for this call
    // and drops the family from them; one that names the call overrides them.
    if socketcall == Socketcall::Absent {
        syscalls.push(absent(SOCKETCALL));
    }
    for personality in PERSONALITIES {
        let comparison = compare(Operator::Equal, personality, 0);
        syscalls.push(allow(vec!["personality".to_owned()], vec![comparison]));
    }
    if !capabilities.has("SYS_ADMIN") {
        let without = compare(Operator::MaskedEqual, CLONE_NAMESPACES, 0);
        syscalls.push(allow(vec!["clone".to_owned()], vec![without]));
        // Its flags are in memory. C libraries fall back to clone when it does not exist.
        syscalls.push(absent("clone3"));
    }
    Seccomp {
        default_action: Action::Errno,
        default_errno_ret: None,
        architectures: arch.executes().to_vec(),
        flags: Vec::new(),
        listener_path: String::new(),
        syscalls,
    }
}

fn allow(names: Vec<String>, args: Vec<ArgRule>) -> SyscallRule {
    SyscallRule {
        names,
        action: Action::Allow,
        errno_ret: None,
        args,
    }
}

/// The call fails as on a kernel that does not have it.
fn absent(name: &str) -> SyscallRule {
    SyscallRule {
        names: vec![name.to_owned()],
        action: Action::Errno,
        errno_ret: Some(ENOSYS),
        args: Vec::new(),
    }
}

fn compare(op: Operator, value: u64, value_two: u64) -> ArgRule {
    ArgRule {
        index: 0,
        value,
        value_two,
        op,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_is_held_back_is_one_that_exists() {
        let known: Vec<&str> = numbers::names().collect();
        let needed = NEEDS.iter();
        let held = NEVER
            .iter()
            .chain(&SOME)
            .chain(needed.flat_map(|(_, calls)| calls.iter()));
        for name in held {
            assert!(known.contains(name), "{name}");
        }
    }

    #[test]
    fn capabilities_that_decide_nothing_make_no_other_profile() {
        for name in rubelet_oci::CAPABILITIES {
            let set = CapSet::of([name]);
            let profile = |set| runtime_default(&set, Socketcall::Absent, Arch::X86_64);
            let is_same = profile(set) == profile(CapSet::EMPTY);
            assert_eq!(deciding(set) == CapSet::EMPTY, is_same, "{name}");
            assert_eq!(profile(deciding(set)), profile(set), "{name}");
        }
    }
}
