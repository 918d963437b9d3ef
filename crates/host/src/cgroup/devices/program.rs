//! The program of version 2, in BPF (`linux/bpf.h`). The kernel runs it at each access to a device,
//! with the access as its context; a zero result denies the access.

use super::policy::{Exception, Policy};
use crate::bpf::Instruction;

/// Registers. The kernel passes the access in the first and reads the result from the zeroth.
const ANSWER: u8 = 0;
const CONTEXT: u8 = 1;
const KIND: u8 = 2;
const ACCESS: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

/// Kinds of devices, as `BPF_DEVCG_DEV_*`.
const BLOCK: i32 = 1;
const CHAR: i32 = 2;

pub(super) mod code {
    //! Codes of instructions.

    /// Load a word of 32 bits.
    pub(in super::super) const LOAD: u8 = 0x61;
    /// Copy a register, 32 bits of it.
    pub(in super::super) const COPY: u8 = 0xbc;
    /// Keep some bits of a register.
    pub(in super::super) const AND: u8 = 0x54;
    /// Shift a register to the right.
    pub(in super::super) const SHIFT: u8 = 0x74;
    /// Put a number into a register.
    pub(in super::super) const PUT: u8 = 0xb7;
    /// Jump.
    pub(in super::super) const JUMP: u8 = 0x05;
    /// Jump if a register is not equal to a number.
    pub(in super::super) const JUMP_UNEQUAL: u8 = 0x55;
    /// Jump if a register and a number have a bit in common.
    pub(in super::super) const JUMP_COMMON: u8 = 0x45;
    /// Return the result.
    pub(in super::super) const EXIT: u8 = 0x95;
}

/// The program for a policy.
pub(super) fn program(policy: &Policy) -> Vec<Instruction> {
    let allow = policy.allows_by_default();
    // The context is three words: kind in the lower half and access in the upper half, major, minor.
    let mut program = vec![
        load(KIND, 0),
        instruction(code::COPY, ACCESS, KIND, 0),
        instruction(code::AND, KIND, 0, 0xffff),
        instruction(code::SHIFT, ACCESS, 0, 16),
        load(MAJOR, 4),
        load(MINOR, 8),
    ];
    for exception in policy.exceptions() {
        program.extend(check(exception, allow));
    }
    program.extend(answer(allow));
    program
}

/// Returns the opposite of the default if the access is an exception, and continues otherwise.
fn check(exception: Exception, allow: bool) -> Vec<Instruction> {
    let Exception { devices, access } = exception;
    let kind = if devices.block { BLOCK } else { CHAR };
    let mut steps = vec![instruction(code::JUMP_UNEQUAL, KIND, 0, kind)];
    if allow {
        // One denied access type denies the whole access.
        let hit = instruction(code::JUMP_COMMON, ACCESS, 0, i32::from(access));
        steps.push(Instruction { offset: 1, ..hit });
        steps.push(instruction(code::JUMP, 0, 0, 0));
    } else {
        // All access types have to be allowed.
        let others = i32::from(!access & 7);
        if others != 0 {
            steps.push(instruction(code::JUMP_COMMON, ACCESS, 0, others));
        }
    }
    for (register, number) in [(MAJOR, devices.major), (MINOR, devices.minor)] {
        if let Some(number) = number.and_then(|number| i32::try_from(number).ok()) {
            steps.push(instruction(code::JUMP_UNEQUAL, register, 0, number));
        }
    }
    let mut behind = steps.len() + 2;
    for step in &mut steps {
        behind -= 1;
        // An existing offset stays within the check.
        if step.offset == 0 {
            step.offset = i16::try_from(behind).expect("there are at most seven steps");
        }
    }
    steps.extend(answer(!allow));
    steps
}

fn answer(allow: bool) -> [Instruction; 2] {
    [
        instruction(code::PUT, ANSWER, 0, i32::from(allow)),
        instruction(code::EXIT, 0, 0, 0),
    ]
}

fn load(register: u8, offset: i16) -> Instruction {
    let load = instruction(code::LOAD, register, CONTEXT, 0);
    Instruction { offset, ..load }
}

fn instruction(code: u8, target: u8, source: u8, immediate: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") {
        source << 4 | target
    } else {
        target << 4 | source
    };
    Instruction {
        code,
        registers,
        offset: 0,
        immediate,
    }
}
