//! The numbers of system calls, by architecture.

use rubelet_oci::Architecture;

const TABLE: &str = include_str!("numbers.txt");

/// Set in the numbers of x32.
pub(super) const X32_BIT: u32 = 0x4000_0000;
/// The first number of the calls that only 32-bit ARM has.
pub(super) const ARM_PRIVATE: u32 = 0x000f_0000;
/// The newest call of the table; new calls have the same number on all architectures.
pub(super) const NEWEST: u32 = 470;

/// Calls that have another number in x32 than in x86-64.
const X32: [(&str, u32); 36] = [
    ("rt_sigaction", 512),
    ("rt_sigreturn", 513),
    ("ioctl", 514),
    ("readv", 515),
    ("writev", 516),
    ("recvfrom", 517),
    ("sendmsg", 518),
    ("recvmsg", 519),
    ("execve", 520),
    ("ptrace", 521),
    ("rt_sigpending", 522),
    ("rt_sigtimedwait", 523),
    ("rt_sigqueueinfo", 524),
    ("sigaltstack", 525),
    ("timer_create", 526),
    ("mq_notify", 527),
    ("kexec_load", 528),
    ("waitid", 529),
    ("set_robust_list", 530),
    ("get_robust_list", 531),
    ("vmsplice", 532),
    ("move_pages", 533),
    ("preadv", 534),
    ("pwritev", 535),
    ("rt_tgsigqueueinfo", 536),
    ("recvmmsg", 537),
    ("sendmmsg", 538),
    ("process_vm_readv", 539),
    ("process_vm_writev", 540),
    ("setsockopt", 541),
    ("getsockopt", 542),
    ("io_setup", 543),
    ("io_submit", 544),
    ("execveat", 545),
    ("preadv2", 546),
    ("pwritev2", 547),
];

/// Every name of the table, on whatever architecture.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    lines().map(|(name, _)| name)
}

/// The parsed table.
pub(super) struct SyscallTable(Vec<(&'static str, [Option<u32>; COLUMNS])>);

/// x86-64, i386, arm64, arm.
const COLUMNS: usize = 4;

impl SyscallTable {
    pub(super) fn read() -> Self {
        let row = |numbers: &str| {
            let mut row = [None; COLUMNS];
            for (column, number) in row.iter_mut().zip(numbers.split(' ')) {
                *column = number.parse().ok();
            }
            row
        };
        // The file is in the order of the names.
        Self(
            lines()
                .map(|(name, numbers)| (name, row(numbers)))
                .collect(),
        )
    }

    /// The number of a call, if that architecture has it.
    pub(super) fn number(&self, architecture: Architecture, name: &str) -> Option<u32> {
        let column = match architecture {
            Architecture::X86_64 | Architecture::X32 => 0,
            Architecture::X86 => 1,
            Architecture::Aarch64 => 2,
            Architecture::Arm => 3,
            Architecture::Other => return None,
        };
        let row = self.0.binary_search_by_key(&name, |(one, _)| one).ok()?;
        let number = self.0[row].1[column]?;
        if architecture != Architecture::X32 {
            return Some(number);
        }
        let own = X32.iter().find(|(one, _)| *one == name);
        Some(own.map_or(number, |(_, own)| *own) | X32_BIT)
    }
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_kernels_numbers() {
        let table = SyscallTable::read();
        for (architecture, name, number) in [
            (Architecture::X86_64, "read", 0),
            (Architecture::X86_64, "clone3", 435),
            (Architecture::X86, "socketcall", 102),
            (Architecture::X32, "read", X32_BIT),
            (Architecture::X32, "execve", X32_BIT + 520),
            (Architecture::Aarch64, "openat", 56),
            (Architecture::Arm, "open", 5),
            (Architecture::Arm, "set_tls", ARM_PRIVATE + 5),
        ] {
            assert_eq!(table.number(architecture, name), Some(number), "{name}");
        }
        assert_eq!(table.number(Architecture::Aarch64, "open"), None);
        assert_eq!(table.number(Architecture::Other, "read"), None);
    }

    #[test]
    fn names_are_in_order_so_that_each_is_found() {
        let names: Vec<&str> = names().collect();
        assert!(names.is_sorted() && names.len() > 400);
    }

    #[test]
    fn what_is_new_has_the_same_number_everywhere() {
        let table = SyscallTable::read();
        for architecture in [
            Architecture::X86_64,
            Architecture::X86,
            Architecture::Aarch64,
            Architecture::Arm,
        ] {
            let numbers = names().filter_map(|name| table.number(architecture, name));
            let public = numbers.filter(|number| *number < ARM_PRIVATE);
            assert_eq!(public.max(), Some(NEWEST), "{architecture:?}");
        }
    }
}
