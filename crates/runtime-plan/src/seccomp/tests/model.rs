//! What a profile says about a call, found by reading it from top to bottom.

use rubelet_oci::{Action, Architecture, ArgRule, Operator, Seccomp};

use super::{Arch, interpreter::Call, numbers};

pub(super) const AUDIT_X86_64: u32 = 0xc000_003e;
pub(super) const AUDIT_X86: u32 = 0x4000_0003;
pub(super) const AUDIT_AARCH64: u32 = 0xc000_00b7;
pub(super) const AUDIT_ARM: u32 = 0x4000_0028;

/// The verdict.
pub(super) fn says(profile: &Seccomp, arch: Arch, call: &Call) -> u32 {
    let cancelled = call.number == u32::MAX;
    let x32 = call.number >= numbers::X32_BIT && !cancelled;
    let architecture = match (arch, call.audit) {
        (Arch::X86_64, AUDIT_X86_64) if x32 => Architecture::X32,
        (Arch::X86_64, AUDIT_X86_64) => Architecture::X86_64,
        (Arch::X86_64, AUDIT_X86) => Architecture::X86,
        (Arch::Aarch64, AUDIT_AARCH64) => Architecture::Aarch64,
        (Arch::Aarch64, AUDIT_ARM) => Architecture::Arm,
        _ => return 0x8000_0000,
    };
    let native = match arch {
        Arch::X86_64 => Architecture::X86_64,
        Arch::Aarch64 => Architecture::Aarch64,
    };
    if architecture != native && !profile.architectures.contains(&architecture) {
        return 0x8000_0000;
    }
    let table = numbers::SyscallTable::read();
    let is = |name: &str| table.number(architecture, name) == Some(call.number);
    let narrow = matches!(architecture, Architecture::X86 | Architecture::Arm);
    let mut flat = None;
    for rule in &profile.syscalls {
        let verdict = value(rule.action, rule.errno_ret);
        for name in &rule.names {
            let mut holds = rule.args.is_empty();
            if is(name) && !rule.args.is_empty() {
                let mut seen = Vec::new();
                let repeats = rule.args.iter().any(|one| {
                    let again = seen.contains(&one.index);
                    seen.push(one.index);
                    again
                });
                let mut each = rule.args.iter().map(|one| compare(one, call, narrow));
                holds = if repeats {
                    each.any(|one| one)
                } else {
                    each.all(|one| one)
                };
                if holds {
                    return verdict;
                }
            }
            if is(name) && holds {
                flat = flat.or(Some(verdict));
            }
            let function = match name.as_str() {
                "socket" => Some(("socketcall", 1)),
                "connect" => Some(("socketcall", 3)),
                "shmget" => Some(("ipc", 23)),
                _ => None,
            };
            if architecture == Architecture::X86
                && let Some((other, function)) = function
                && is(other)
                && call.args[0] & 0xffff == function
            {
                let allows = matches!(rule.action, Action::Allow | Action::Log);
                if rule.args.is_empty() || !allows {
                    return verdict;
                }
            }
        }
    }
    let known = call.number <= numbers::NEWEST
        || (architecture == Architecture::X32 && call.number <= numbers::X32_BIT + 547)
        || (architecture == Architecture::Arm
            && (numbers::ARM_PRIVATE + 1..=numbers::ARM_PRIVATE + 6).contains(&call.number));
    let default = value(profile.default_action, profile.default_errno_ret);
    flat.unwrap_or(match profile.default_action {
        Action::Allow | Action::Log => default,
        _ if known => default,
        _ => 0x0005_0026,
    })
}

fn compare(rule: &ArgRule, call: &Call, narrow: bool) -> bool {
    let width = if narrow {
        u64::from(u32::MAX)
    } else {
        u64::MAX
    };
    let argument = call.args[usize::try_from(rule.index).unwrap()] & width;
    let (value, two) = (rule.value & width, rule.value_two & width);
    match rule.op {
        Operator::NotEqual => argument != value,
        Operator::Less => argument < value,
        Operator::LessOrEqual => argument <= value,
        Operator::Equal => argument == value,
        Operator::GreaterOrEqual => argument >= value,
        Operator::Greater => argument > value,
        Operator::MaskedEqual => argument & value == two,
    }
}

fn value(action: Action, number: Option<u32>) -> u32 {
    let number = number.unwrap_or(1);
    match action {
        Action::KillThread => 0,
        Action::KillProcess => 0x8000_0000,
        Action::Trap => 0x0003_0000,
        Action::Errno => 0x0005_0000 + number,
        Action::Trace => 0x7ff0_0000 + number,
        Action::Log => 0x7ffc_0000,
        Action::Allow => 0x7fff_0000,
        Action::Notify => panic!("no program has this"),
    }
}
