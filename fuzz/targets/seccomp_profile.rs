//! A seccomp profile from a file: the program for the kernel says what the profile says.
//!
//! The first eight bytes choose the node and an argument; the rest is the profile's JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rubelet_oci::{Architecture, Seccomp};
use rubelet_runtime_plan::{
    capability::CapSet,
    seccomp::{Arch, ProfileContext, compile, localhost},
};

#[path = "../../crates/runtime-plan/src/seccomp/tests/interpreter.rs"]
mod interpreter;
#[path = "../../crates/runtime-plan/src/seccomp/tests/model.rs"]
mod model;
#[expect(dead_code, reason = "the table of numbers has more than is asked here")]
#[path = "../../crates/runtime-plan/src/seccomp/numbers.rs"]
mod numbers;

use interpreter::{Call, run};
use model::{AUDIT_AARCH64, AUDIT_ARM, AUDIT_X86, AUDIT_X86_64};

/// Most calls that are made against one program.
const CALLS: usize = 24;

fuzz_target!(|data: &[u8]| {
    let Some((head, json)) = data.split_first_chunk::<8>() else {
        return;
    };
    let Ok(json) = std::str::from_utf8(json) else {
        return;
    };
    let arch = if head[0] & 1 == 0 {
        Arch::X86_64
    } else {
        Arch::Aarch64
    };
    let node = ProfileContext {
        capabilities: CapSet::from_bits(u64::from(head[1]) << (head[0] >> 4)),
        arch,
        kernel: (u32::from(head[2]), u32::from(head[3])),
    };
    let Ok(profile) = localhost(json, &node) else {
        return;
    };
    let program = compile(&profile, arch).expect("what was accepted compiles");
    assert_loads(&program);
    let spare = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    for call in calls(&profile, arch, spare).into_iter().take(CALLS) {
        assert_eq!(
            run(&program, &call),
            model::says(&profile, arch, &call),
            "{call:?}"
        );
    }
});

/// What the kernel checks before it takes a program: known instructions, aligned loads within the
/// data, jumps within the program, a verdict at its end. All jumps lead forward, so it terminates.
fn assert_loads(program: &[u8]) {
    let length = program.len() / 8;
    assert!(program.len().is_multiple_of(8) && (1..=4096).contains(&length));
    for (at, one) in program.chunks(8).enumerate() {
        let code = u16::from_ne_bytes([one[0], one[1]]);
        let (on_true, on_false) = (usize::from(one[2]), usize::from(one[3]));
        let k = u32::from_ne_bytes([one[4], one[5], one[6], one[7]]) as usize;
        let furthest = match code {
            0x20 => {
                assert!(k.is_multiple_of(4) && k < 64, "load of {k}");
                at + 1
            }
            0x54 => at + 1,
            0x05 => at + 1 + k,
            0x15 | 0x25 | 0x35 => at + 1 + on_true.max(on_false),
            0x06 => at,
            _ => panic!("unknown instruction {code:#x} at {at}"),
        };
        assert!(furthest < length, "{furthest} of {length}");
    }
}

/// Calls that the rules are about, with arguments around the values that they compare.
fn calls(profile: &Seccomp, arch: Arch, spare: u64) -> Vec<Call> {
    let families: &[(u32, Architecture)] = match arch {
        Arch::X86_64 => &[
            (AUDIT_X86_64, Architecture::X86_64),
            (AUDIT_X86, Architecture::X86),
            (AUDIT_X86_64, Architecture::X32),
        ],
        Arch::Aarch64 => &[
            (AUDIT_AARCH64, Architecture::Aarch64),
            (AUDIT_ARM, Architecture::Arm),
        ],
    };
    let table = numbers::SyscallTable::read();
    let mut calls = vec![Call {
        number: u32::try_from(spare & 0x3ff).unwrap_or_default(),
        audit: families[0].0,
        args: [spare; 6],
    }];
    for rule in profile.syscalls.iter().take(4) {
        for name in rule.names.iter().take(2) {
            for (audit, architecture) in families {
                let Some(number) = table.number(*architecture, name) else {
                    continue;
                };
                // The model knows few of the functions of these two.
                if *architecture == Architecture::X86 && ["socketcall", "ipc"].contains(&&**name) {
                    continue;
                }
                for nudge in [0, 1, u64::MAX, spare << 32] {
                    let mut args = [spare; 6];
                    for one in &rule.args {
                        let index = usize::try_from(one.index).unwrap_or_default();
                        args[index] = one.value.wrapping_add(nudge);
                    }
                    // The kernel hands over arguments of 32-bit calls without an upper half.
                    if matches!(*audit, AUDIT_X86 | AUDIT_ARM) {
                        args = args.map(|argument| argument & u64::from(u32::MAX));
                    }
                    calls.push(Call {
                        number,
                        audit: *audit,
                        args,
                    });
                }
            }
        }
    }
    calls
}
