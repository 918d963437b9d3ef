//! Compiles a profile to a BPF program.

use std::collections::BTreeMap;

use rubelet_oci::{Action, Architecture, ArgRule, Operator, Seccomp, SyscallRule};

use super::{
    Arch,
    bpf::{self, Code},
    numbers::{self, SyscallTable},
};
use crate::Refusal;

/// Verdicts, `SECCOMP_RET_…`.
const KILL_PROCESS: u32 = 0x8000_0000;
const KILL_THREAD: u32 = 0;
const TRAP: u32 = 0x0003_0000;
const ERRNO: u32 = 0x0005_0000;
const TRACE: u32 = 0x7ff0_0000;
const LOG: u32 = 0x7ffc_0000;
const ALLOW: u32 = 0x7fff_0000;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
/// The largest error number that a system call may return.
const LARGEST_ERRNO: u32 = 4095;
/// Number of the arguments of a call.
const ARGUMENTS: u32 = 6;
/// The number of a call that a tracer has cancelled.
const CANCELLED: u32 = u32::MAX;

/// Calls that 32-bit x86 also has as numbered functions of another call: their name, that call, the
/// function.
const MULTIPLEXED: [(&str, &str, u64); 32] = [
    ("socket", "socketcall", 1),
    ("bind", "socketcall", 2),
    ("connect", "socketcall", 3),
    ("listen", "socketcall", 4),
    ("accept", "socketcall", 5),
    ("getsockname", "socketcall", 6),
    ("getpeername", "socketcall", 7),
    ("socketpair", "socketcall", 8),
    ("send", "socketcall", 9),
    ("recv", "socketcall", 10),
    ("sendto", "socketcall", 11),
    ("recvfrom", "socketcall", 12),
    ("shutdown", "socketcall", 13),
    ("setsockopt", "socketcall", 14),
    ("getsockopt", "socketcall", 15),
    ("sendmsg", "socketcall", 16),
    ("recvmsg", "socketcall", 17),
    ("accept4", "socketcall", 18),
    ("recvmmsg", "socketcall", 19),
    ("sendmmsg", "socketcall", 20),
    ("semop", "ipc", 1),
    ("semget", "ipc", 2),
    ("semctl", "ipc", 3),
    ("semtimedop", "ipc", 4),
    ("msgsnd", "ipc", 11),
    ("msgrcv", "ipc", 12),
    ("msgget", "ipc", 13),
    ("msgctl", "ipc", 14),
    ("shmat", "ipc", 21),
    ("shmdt", "ipc", 22),
    ("shmget", "ipc", 23),
    ("shmctl", "ipc", 24),
];

/// The decision about one system call number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SyscallDecision {
    /// Conjunctions of comparisons and their verdicts, tried in order.
    cases: Vec<(Vec<ArgRule>, u32)>,
    /// The verdict if none holds.
    otherwise: u32,
    /// Arguments have 64 bits.
    wide: bool,
}

/// The program for the kernel: `struct sock_filter[]` in the host's byte order.
///
/// Calls of an architecture that the profile does not name end the process; that of the host is
/// always named.
///
/// # Errors
/// An action that needs an agent (`SCMP_ACT_NOTIFY`), an invalid error number or index of an
/// argument, or a program that is too long for the kernel.
pub fn compile(profile: &Seccomp, arch: Arch) -> Result<Vec<u8>, Refusal> {
    let default = verdict(profile.default_action, profile.default_errno_ret)?;
    for rule in &profile.syscalls {
        check(rule)?;
    }
    let named =
        |one: &Architecture| *one == arch.executes()[0] || profile.architectures.contains(one);
    let table = SyscallTable::read();
    let mut code = bpf::verdict(KILL_PROCESS);
    for (audit, members) in families(arch).iter().rev() {
        let mut ranges = BTreeMap::from([(0, SyscallDecision::flat(KILL_PROCESS))]);
        for member in members.iter().filter(|member| named(member)) {
            ranges_of(&table, *member, profile, default, &mut ranges)?;
        }
        if members.iter().any(named) {
            let mut section = vec![bpf::load(bpf::NUMBER)];
            section.extend(search(&ranges.into_iter().collect::<Vec<_>>()));
            code = bpf::if_equal(*audit, section, code);
        }
    }
    code.insert(0, bpf::load(bpf::ARCHITECTURE));
    if code.len() > bpf::LONGEST {
        return Err(refuse(format!(
            "the compiled profile has {} instructions, more than the {} that the kernel accepts: reduce the comparisons of arguments",
            code.len(),
            bpf::LONGEST
        )));
    }
    Ok(code.into_iter().flat_map(bpf::Instruction::bytes).collect())
}

/// The kernel's constants for the architectures (`AUDIT_ARCH_…`): x86-64 and x32 share one.
fn families(arch: Arch) -> &'static [(u32, &'static [Architecture])] {
    match arch {
        Arch::X86_64 => &[
            (0xc000_003e, &[Architecture::X86_64, Architecture::X32]),
            (0x4000_0003, &[Architecture::X86]),
        ],
        Arch::Aarch64 => &[
            (0xc000_00b7, &[Architecture::Aarch64]),
            (0x4000_0028, &[Architecture::Arm]),
        ],
    }
}

impl SyscallDecision {
    fn flat(verdict: u32) -> Self {
        Self {
            cases: Vec::new(),
            otherwise: verdict,
            wide: true,
        }
    }

    fn code(&self) -> Code {
        let mut code = Code::new();
        for (comparisons, verdict) in &self.cases {
            code.extend(bpf::if_all(comparisons, self.wide, *verdict));
        }
        code.extend(bpf::verdict(self.otherwise));
        code
    }
}

/// Puts the decisions about one architecture into `ranges`: each holds from its number up to the
/// next one.
fn ranges_of(
    table: &SyscallTable,
    architecture: Architecture,
    profile: &Seccomp,
    default: u32,
    ranges: &mut BTreeMap<u32, SyscallDecision>,
) -> Result<(), Refusal> {
    let wide = !matches!(architecture, Architecture::X86 | Architecture::Arm);
    let unknown = match profile.default_action {
        Action::Allow | Action::Log => default,
        _ => ERRNO | ENOSYS,
    };
    let calls = calls_of(table, architecture, profile)?;
    let (first, end) = match architecture {
        Architecture::X86_64 => (0, Some(numbers::X32_BIT)),
        Architecture::X32 => (numbers::X32_BIT, Some(CANCELLED)),
        _ => (0, None),
    };
    let newest = match architecture {
        Architecture::X32 => numbers::X32_BIT + 547,
        _ => numbers::NEWEST,
    };
    let mut decisions = BTreeMap::new();
    decisions.insert(first, SyscallDecision::flat(default));
    decisions.insert(newest + 1, SyscallDecision::flat(unknown));
    if architecture == Architecture::Arm {
        decisions.insert(numbers::ARM_PRIVATE + 1, SyscallDecision::flat(default));
        decisions.insert(numbers::ARM_PRIVATE + 7, SyscallDecision::flat(unknown));
    }
    for (number, (cases, flat)) in calls {
        let decision = SyscallDecision {
            wide: wide || cases.is_empty(),
            cases,
            otherwise: flat.unwrap_or(default),
        };
        // The numbers after a call have the decision of those before it, up to the next call in the
        // list.
        let before = decisions.range(..=number).next_back();
        let behind = before.map_or(SyscallDecision::flat(default), |(_, before)| before.clone());
        decisions.insert(number, decision);
        decisions.entry(number + 1).or_insert(behind);
    }
    if let Some(end) = end {
        ranges.retain(|at, _| !(first..end).contains(at));
        decisions.split_off(&end);
        ranges.extend(decisions);
        ranges
            .entry(end)
            .or_insert_with(|| SyscallDecision::flat(KILL_PROCESS));
        // A tracer that cancels a call must not end the process by it.
        ranges.insert(CANCELLED, SyscallDecision::flat(unknown));
    } else {
        *ranges = decisions;
    }
    Ok(())
}

/// The cases of a call and its verdict without comparisons.
type CallRules = (Vec<(Vec<ArgRule>, u32)>, Option<u32>);

fn calls_of(
    table: &SyscallTable,
    architecture: Architecture,
    profile: &Seccomp,
) -> Result<BTreeMap<u32, CallRules>, Refusal> {
    let mut calls: BTreeMap<u32, CallRules> = BTreeMap::new();
    for rule in &profile.syscalls {
        let verdict = verdict(rule.action, rule.errno_ret)?;
        for name in &rule.names {
            if let Some(number) = table.number(architecture, name) {
                add(calls.entry(number).or_default(), &rule.args, verdict);
            }
            if architecture == Architecture::X86
                && let Some((other, function)) = multiplexed(name)
                && let Some(number) = table.number(architecture, other)
            {
                // The arguments are in memory, which a filter can't read: a rule that allows only
                // some values allows nothing, a rule that denies some values denies all.
                let allows = matches!(rule.action, Action::Allow | Action::Log);
                if rule.args.is_empty() || !allows {
                    let function = ArgRule {
                        index: 0,
                        value: 0xffff,
                        value_two: function,
                        op: Operator::MaskedEqual,
                    };
                    add(calls.entry(number).or_default(), &[function], verdict);
                }
            }
        }
    }
    Ok(calls)
}

fn multiplexed(name: &str) -> Option<(&'static str, u64)> {
    MULTIPLEXED
        .iter()
        .find(|(one, _, _)| *one == name)
        .map(|(_, other, function)| (*other, *function))
}

/// Two comparisons of one argument are alternatives, as runc has it.
fn add(rules: &mut CallRules, comparisons: &[ArgRule], verdict: u32) {
    let (cases, flat) = rules;
    let repeated = (0..ARGUMENTS).any(|index| {
        let same = comparisons.iter().filter(|one| one.index == index);
        same.count() > 1
    });
    if comparisons.is_empty() {
        flat.get_or_insert(verdict);
    } else if repeated {
        cases.extend(comparisons.iter().map(|one| (vec![*one], verdict)));
    } else {
        cases.push((comparisons.to_vec(), verdict));
    }
}

/// Binary search for the range in which the number is.
fn search(ranges: &[(u32, SyscallDecision)]) -> Code {
    let merged: Vec<&(u32, SyscallDecision)> = {
        let mut merged: Vec<&(u32, SyscallDecision)> = Vec::new();
        for range in ranges {
            if merged.last().is_none_or(|last| last.1 != range.1) {
                merged.push(range);
            }
        }
        merged
    };
    halve(&merged)
}

fn halve(ranges: &[&(u32, SyscallDecision)]) -> Code {
    match ranges {
        [] => bpf::verdict(KILL_PROCESS),
        [(_, only)] => only.code(),
        _ => {
            let (below, above) = ranges.split_at(ranges.len() / 2);
            bpf::split(above[0].0, halve(below), halve(above))
        }
    }
}

fn check(rule: &SyscallRule) -> Result<(), Refusal> {
    match rule.args.iter().find(|one| one.index >= ARGUMENTS) {
        None => Ok(()),
        Some(one) => Err(refuse(format!(
            "a rule for {:?} compares argument {}; arguments are 0 to 5",
            rule.names, one.index
        ))),
    }
}

fn verdict(action: Action, number: Option<u32>) -> Result<u32, Refusal> {
    let number = number.unwrap_or(EPERM);
    Ok(match action {
        Action::KillThread => KILL_THREAD,
        Action::KillProcess => KILL_PROCESS,
        Action::Trap => TRAP,
        Action::Log => LOG,
        Action::Allow => ALLOW,
        Action::Errno if number <= LARGEST_ERRNO => ERRNO | number,
        Action::Trace if number <= 0xffff => TRACE | number,
        Action::Errno | Action::Trace => {
            return Err(refuse(format!("errnoRet {number} is out of range")));
        }
        Action::Notify => {
            return Err(refuse(
                "SCMP_ACT_NOTIFY is not supported: this runtime has no agent that decides about system calls".to_owned(),
            ));
        }
    })
}

fn refuse(message: String) -> Refusal {
    Refusal::new("linux.security_context.seccomp", message)
}
