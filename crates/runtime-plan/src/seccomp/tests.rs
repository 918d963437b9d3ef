//! Programs executed by an interpreter and compared with what profiles say.

mod interpreter;
mod model;
mod properties;

use rubelet_oci::{Action, Architecture, ArgRule, Operator, Seccomp, SyscallRule};

use super::*;
use crate::capability::CapSet;
use interpreter::{Call, run};
use model::{AUDIT_AARCH64, AUDIT_ARM, AUDIT_X86, AUDIT_X86_64};

const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
const KILL_PROCESS: u32 = 0x8000_0000;

fn number(architecture: Architecture, name: &str) -> u32 {
    numbers::SyscallTable::read()
        .number(architecture, name)
        .unwrap()
}

fn call(audit: u32, number: u32, args: &[u64]) -> Call {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Call {
        number,
        audit,
        args: all,
    }
}

/// The verdict of the default profile about a call of x86-64.
fn default_says(capabilities: &[&str], name: &str, args: &[u64]) -> u32 {
    let capabilities = CapSet::of(capabilities.iter().copied());
    let profile = runtime_default(&capabilities, Socketcall::Absent, Arch::X86_64);
    let program = compile(&profile, Arch::X86_64).unwrap();
    let number = number(Architecture::X86_64, name);
    run(&program, &call(AUDIT_X86_64, number, args))
}

#[test]
fn by_default_programs_run_and_the_host_is_out_of_reach() {
    for name in [
        "read",
        "openat",
        "execve",
        "futex",
        "ptrace",
        "statx",
        "uretprobe",
    ] {
        assert_eq!(default_says(&[], name, &[]), ALLOW, "{name}");
    }
    for name in [
        "mount",
        "unshare",
        "setns",
        "bpf",
        "keyctl",
        "init_module",
        "kexec_load",
        "reboot",
        "io_uring_setup",
        "perf_event_open",
        "open_by_handle_at",
        "chroot",
        "open_tree_attr",
    ] {
        assert_eq!(default_says(&[], name, &[]), EPERM, "{name}");
    }
}

#[test]
fn capabilities_open_the_calls_that_need_them() {
    for (capability, name) in [
        ("SYS_ADMIN", "mount"),
        ("SYS_ADMIN", "clone3"),
        ("SYS_CHROOT", "chroot"),
        ("SYSLOG", "syslog"),
        ("SYS_ADMIN", "syslog"),
        ("BPF", "bpf"),
        ("SYS_TIME", "clock_settime"),
        ("SYS_MODULE", "init_module"),
    ] {
        assert_eq!(default_says(&[capability], name, &[]), ALLOW, "{name}");
    }
    assert_eq!(default_says(&["SYS_ADMIN"], "keyctl", &[]), EPERM);
}

#[test]
fn by_default_some_arguments_are_refused() {
    const NEW_USER: u64 = 0x1000_0000;
    assert_eq!(default_says(&[], "clone", &[0x0001_1f00]), ALLOW);
    assert_eq!(default_says(&[], "clone", &[NEW_USER]), EPERM);
    assert_eq!(default_says(&["SYS_ADMIN"], "clone", &[NEW_USER]), ALLOW);
    assert_eq!(default_says(&[], "clone3", &[]), ENOSYS);
    let refused: Vec<u64> = (0..64)
        .filter(|family| default_says(&[], "socket", &[*family]) != ALLOW)
        .filter(|family| *family < 46)
        .collect();
    assert_eq!(refused, [38, 40]);
    for trick in [38 | 1 << 32, 40 | 1 << 63] {
        assert_eq!(default_says(&[], "socket", &[trick]), EPERM);
    }
    assert_eq!(default_says(&[], "personality", &[0xffff_ffff]), ALLOW);
    assert_eq!(default_says(&[], "personality", &[0x0400_0000]), EPERM);
}

/// The families of the kernel's ciphers and of hypervisors, which `socket` is filtered for.
const CLOSED_FAMILIES: [u64; 2] = [38, 40];

#[test]
fn no_way_to_make_a_socket_leads_past_the_filter_of_families() {
    let of = |socketcall| {
        let profile = runtime_default(&CapSet::ALL, socketcall, Arch::X86_64);
        compile(&profile, Arch::X86_64).unwrap()
    };
    let closed = of(Socketcall::Absent);
    for (audit, architecture) in [
        (AUDIT_X86_64, Architecture::X86_64),
        (AUDIT_X86_64, Architecture::X32),
        (AUDIT_X86, Architecture::X86),
    ] {
        let number = number(architecture, "socket");
        for family in CLOSED_FAMILIES {
            let call = call(audit, number, &[family, 5, 0]);
            assert_eq!(run(&closed, &call), EPERM, "{architecture:?} {family}");
        }
        let internet = call(audit, number, &[2, 1, 0]);
        assert_eq!(run(&closed, &internet), ALLOW, "{architecture:?}");
    }
    let number = number(Architecture::X86, "socketcall");
    let says = |program: &[u8], function| run(program, &call(AUDIT_X86, number, &[function, 0]));
    // The kernel compares 32 bits of the function; the filter sees those.
    for function in [1, 1 | 1 << 16, 1 | 1 << 32] {
        assert_eq!(says(&closed, function), ENOSYS, "{function:#x}");
    }
    for function in 1..=20 {
        assert_eq!(says(&of(Socketcall::Allowed), function), ALLOW);
    }
}

#[test]
fn calls_that_are_newer_than_the_table_do_not_exist() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let program = compile(
            &runtime_default(&CapSet::EMPTY, Socketcall::Absent, arch),
            arch,
        )
        .unwrap();
        let audits = match arch {
            Arch::X86_64 => [AUDIT_X86_64, AUDIT_X86],
            Arch::Aarch64 => [AUDIT_AARCH64, AUDIT_ARM],
        };
        for audit in audits {
            for number in [numbers::NEWEST + 1, 5000, u32::MAX] {
                assert_eq!(run(&program, &call(audit, number, &[])), ENOSYS, "{number}");
            }
        }
        assert_eq!(run(&program, &call(0x1234, 0, &[])), KILL_PROCESS);
        assert!(
            program.len() / 8 < 1000,
            "{} instructions",
            program.len() / 8
        );
    }
}

#[test]
fn calls_of_other_architectures_are_filtered_by_their_own_numbers() {
    let program = compile(
        &runtime_default(&CapSet::EMPTY, Socketcall::Absent, Arch::X86_64),
        Arch::X86_64,
    )
    .unwrap();
    let x86 = |name| {
        let number = number(Architecture::X86, name);
        run(&program, &call(AUDIT_X86, number, &[]))
    };
    let x32 = |name| {
        let number = number(Architecture::X32, name);
        run(&program, &call(AUDIT_X86_64, number, &[]))
    };
    for (name, verdict) in [("read", ALLOW), ("socketcall", ENOSYS), ("mount", EPERM)] {
        assert_eq!(x86(name), verdict, "{name}");
    }
    for (name, verdict) in [("read", ALLOW), ("execve", ALLOW), ("mount", EPERM)] {
        assert_eq!(x32(name), verdict, "{name}");
    }
    let arm = compile(
        &runtime_default(&CapSet::EMPTY, Socketcall::Absent, Arch::Aarch64),
        Arch::Aarch64,
    )
    .unwrap();
    let set_tls = number(Architecture::Arm, "set_tls");
    assert_eq!(run(&arm, &call(AUDIT_ARM, set_tls, &[])), ALLOW);
}

fn rule(names: &[&str], action: Action, args: &[ArgRule]) -> SyscallRule {
    SyscallRule {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        action,
        errno_ret: None,
        args: args.to_vec(),
    }
}

fn profile(default_action: Action, syscalls: Vec<SyscallRule>) -> Seccomp {
    Seccomp {
        default_action,
        default_errno_ret: None,
        architectures: Vec::new(),
        flags: Vec::new(),
        listener_path: String::new(),
        syscalls,
    }
}

#[test]
fn what_denies_a_socket_can_not_be_passed_by_the_old_way_to_make_one() {
    let family = ArgRule {
        index: 0,
        value: 40,
        value_two: 0,
        op: Operator::Equal,
    };
    let mut denies = profile(
        Action::Allow,
        vec![rule(&["socket"], Action::Errno, &[family])],
    );
    denies.architectures = vec![Architecture::X86];
    let program = compile(&denies, Arch::X86_64).unwrap();
    let socketcall = number(Architecture::X86, "socketcall");
    assert_eq!(run(&program, &call(AUDIT_X86, socketcall, &[1])), EPERM);
    assert_eq!(run(&program, &call(AUDIT_X86, socketcall, &[2])), ALLOW);
}

#[test]
fn architectures_that_are_not_named_are_ended() {
    let open = profile(Action::Allow, Vec::new());
    let program = compile(&open, Arch::X86_64).unwrap();
    assert_eq!(run(&program, &call(AUDIT_X86_64, 0, &[])), ALLOW);
    assert_eq!(run(&program, &call(AUDIT_X86_64, 600, &[])), ALLOW);
    assert_eq!(run(&program, &call(AUDIT_X86, 0, &[])), KILL_PROCESS);
    let x32 = call(AUDIT_X86_64, numbers::X32_BIT, &[]);
    assert_eq!(run(&program, &x32), KILL_PROCESS);
}

#[test]
fn what_can_not_be_compiled_is_refused() {
    let notify = profile(Action::Allow, vec![rule(&["mount"], Action::Notify, &[])]);
    let error = compile(&notify, Arch::X86_64).unwrap_err();
    assert!(error.message.contains("SCMP_ACT_NOTIFY"));
    let bad_index = ArgRule {
        index: 6,
        value: 0,
        value_two: 0,
        op: Operator::Equal,
    };
    let bad = profile(
        Action::Allow,
        vec![rule(&["mount"], Action::Errno, &[bad_index])],
    );
    assert!(compile(&bad, Arch::X86_64).is_err());
    let endless: Vec<SyscallRule> = (0..2000)
        .map(|value| {
            let args = [ArgRule {
                index: 0,
                value,
                value_two: 0,
                op: Operator::Equal,
            }];
            rule(&["mount"], Action::Errno, &args)
        })
        .collect();
    let error = compile(&profile(Action::Allow, endless), Arch::X86_64).unwrap_err();
    assert!(error.message.contains("4096"));
}

fn now(capabilities: &[&str]) -> ProfileContext {
    ProfileContext {
        capabilities: CapSet::of(capabilities.iter().copied()),
        arch: Arch::X86_64,
        kernel: (6, 1),
    }
}

#[test]
fn dockers_conditions_choose_among_the_rules() {
    let json = r#"{
        "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38,
        "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]},
                    {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": null}],
        "syscalls": [
            {"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": null, "comment": "", "includes": {}, "excludes": {}},
            {"name": "write", "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["amd64"]}},
            {"names": ["a"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["s390x"]}},
            {"names": ["b"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
            {"names": ["c"], "action": "SCMP_ACT_ALLOW", "excludes": {"caps": ["CAP_SYS_ADMIN", "CAP_KILL"]}},
            {"names": ["d"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "4.8"}},
            {"names": ["e"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "7.0"}}
        ]
    }"#;
    let names = |capabilities: &[&str]| {
        let found = localhost(json, &now(capabilities)).unwrap();
        assert_eq!(
            found.architectures,
            [Architecture::X86_64, Architecture::X86]
        );
        let names = found.syscalls.into_iter().flat_map(|rule| rule.names);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["read", "write", "c", "d"]);
    assert_eq!(names(&["SYS_ADMIN"]), ["read", "write", "b", "d"]);
    assert_eq!(names(&["KILL"]), ["read", "write", "d"]);
}

#[test]
fn files_that_are_no_profiles_are_refused_with_the_reason() {
    for (json, reason) in [
        ("", "not a valid seccomp profile"),
        ("{}", "defaultAction"),
        (r#"{"defaultAction": "ALLOW"}"#, "ALLOW"),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["x"], "action": "SCMP_ACT_NOTIFY"}]}"#,
            "SCMP_ACT_NOTIFY",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_ERRNO"}]}"#,
            "names no call",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/run/x"}"#,
            "listenerPath",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "flags": ["NEW_FLAG"]}"#,
            "NEW_FLAG",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 5000}"#,
            "5000",
        ),
    ] {
        let error = localhost(json, &now(&[])).unwrap_err();
        assert!(error.message.contains(reason), "{json}: {error}");
    }
}
