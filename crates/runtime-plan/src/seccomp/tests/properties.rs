//! Any profile, any call: the program says what the profile says.

use proptest::{collection::vec, prelude::*, sample::select};
use rubelet_oci::{Action, Architecture, ArgRule, Operator, Seccomp, SyscallRule};

use super::{
    super::{Arch, compile, numbers},
    interpreter::{Call, run},
    model::{self, AUDIT_AARCH64, AUDIT_ARM, AUDIT_X86, AUDIT_X86_64},
};

const NAMES: [&str; 14] = [
    "read",
    "write",
    "open",
    "openat",
    "clone",
    "socket",
    "connect",
    "shmget",
    "personality",
    "set_tls",
    "execve",
    "uprobe",
    "listns",
    "no_such_call",
];

const ACTIONS: [Action; 7] = [
    Action::KillThread,
    Action::KillProcess,
    Action::Trap,
    Action::Errno,
    Action::Trace,
    Action::Log,
    Action::Allow,
];

const OPERATORS: [Operator; 7] = [
    Operator::NotEqual,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Equal,
    Operator::GreaterOrEqual,
    Operator::Greater,
    Operator::MaskedEqual,
];

/// Values around which comparisons go wrong: halves that are equal, less or greater.
fn edge() -> impl Strategy<Value = u64> {
    let half = || select(vec![0u64, 1, 2, 23, 0x7fff_ffff, 0xffff_fffe, 0xffff_ffff]);
    (half(), half()).prop_map(|(high, low)| high << 32 | low)
}

fn comparison() -> impl Strategy<Value = ArgRule> {
    (0..3u32, edge(), edge(), select(OPERATORS.to_vec())).prop_map(
        |(index, value, value_two, op)| ArgRule {
            index,
            value,
            value_two,
            op,
        },
    )
}

fn rule() -> impl Strategy<Value = SyscallRule> {
    (
        vec(select(NAMES.to_vec()), 1..4),
        select(ACTIONS.to_vec()),
        proptest::option::of(0..100u32),
        vec(comparison(), 0..4),
    )
        .prop_map(|(names, action, errno_ret, args)| SyscallRule {
            names: names.into_iter().map(str::to_owned).collect(),
            action,
            errno_ret,
            args,
        })
}

fn profile() -> impl Strategy<Value = Seccomp> {
    let architectures = vec![
        Architecture::X86_64,
        Architecture::X86,
        Architecture::X32,
        Architecture::Aarch64,
        Architecture::Arm,
        Architecture::Other,
    ];
    (
        select(ACTIONS.to_vec()),
        vec(select(architectures), 0..5),
        vec(rule(), 0..12),
    )
        .prop_map(|(default_action, architectures, syscalls)| Seccomp {
            default_action,
            default_errno_ret: None,
            architectures,
            flags: Vec::new(),
            listener_path: String::new(),
            syscalls,
        })
}

/// A call that rules are about, or a neighbour of one.
fn call() -> impl Strategy<Value = Call> {
    let families = vec![
        (AUDIT_X86_64, Architecture::X86_64),
        (AUDIT_X86_64, Architecture::X32),
        (AUDIT_X86, Architecture::X86),
        (AUDIT_AARCH64, Architecture::Aarch64),
        (AUDIT_ARM, Architecture::Arm),
        (0, Architecture::Other),
    ];
    let also = ["socketcall", "ipc"];
    let names: Vec<&str> = NAMES.into_iter().chain(also).collect();
    (
        select(families),
        select(names),
        select(vec![0u32, 0, 0, 1, u32::MAX]),
        prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)],
        [edge(), edge(), edge()],
    )
        .prop_map(|((audit, architecture), name, beside, any, args)| {
            let named = numbers::SyscallTable::read().number(architecture, name);
            let named = named.unwrap_or(u32::MAX);
            let mut all = [0; 6];
            all[..3].copy_from_slice(&args);
            Call {
                number: any.unwrap_or_else(|| named.wrapping_add(beside)),
                audit,
                args: all,
            }
        })
}

proptest! {
    #[test]
    fn a_program_says_what_its_profile_says(
        profile in profile(),
        calls in vec(call(), 1..20),
        arm: bool,
    ) {
        let arch = if arm { Arch::Aarch64 } else { Arch::X86_64 };
        let program = compile(&profile, arch).unwrap();
        for mut call in calls {
            // The kernel hands over arguments of 32-bit calls without an upper half.
            if matches!(call.audit, AUDIT_X86 | AUDIT_ARM) {
                call.args = call.args.map(|argument| argument & u64::from(u32::MAX));
            }
            prop_assert_eq!(
                run(&program, &call),
                model::says(&profile, arch, &call),
                "{:?}",
                call
            );
        }
    }
}
