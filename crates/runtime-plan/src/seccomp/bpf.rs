//! Classic BPF as seccomp takes it. Code is put together from pieces in which every path ends in a
//! return, so one piece can follow another and all jumps lead forward.

use rubelet_oci::{ArgRule, Operator};

/// Offset of the number of the call in `struct seccomp_data`.
pub(super) const NUMBER: u32 = 0;
/// Offset of the architecture.
pub(super) const ARCHITECTURE: u32 = 4;
/// Offset of the first argument; each has 8 bytes.
const ARGUMENTS: u32 = 16;
/// Maximum length of a program in the kernel.
pub(super) const LONGEST: usize = 4096;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const EQUAL: u16 = 0x15;
const GREATER: u16 = 0x25;
const GREATER_OR_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;

/// One instruction: `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    pub(super) jump_true: u8,
    pub(super) jump_false: u8,
    pub(super) operand: u32,
}

impl Instruction {
    fn plain(code: u16, operand: u32) -> Self {
        Self {
            code,
            jump_true: 0,
            jump_false: 0,
            operand,
        }
    }

    fn branch(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> Self {
        Self {
            code,
            jump_true,
            jump_false,
            operand,
        }
    }

    /// The form in memory, in the host's byte order.
    pub(super) fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&self.code.to_ne_bytes());
        bytes[2] = self.jump_true;
        bytes[3] = self.jump_false;
        bytes[4..].copy_from_slice(&self.operand.to_ne_bytes());
        bytes
    }
}

/// Code in which every path ends in a return.
pub(super) type Code = Vec<Instruction>;

/// Loads a word of `struct seccomp_data`.
pub(super) fn load(offset: u32) -> Instruction {
    Instruction::plain(LOAD, offset)
}

/// Returns a verdict.
pub(super) fn verdict(value: u32) -> Code {
    vec![Instruction::plain(RETURN, value)]
}

/// `then` if the accumulator is `value`, else `otherwise`.
pub(super) fn if_equal(value: u32, then: Code, otherwise: Code) -> Code {
    decide(EQUAL, value, otherwise, then)
}

/// `below` if the accumulator is less than `bound`, else `above`.
pub(super) fn split(bound: u32, below: Code, above: Code) -> Code {
    decide(GREATER_OR_EQUAL, bound, below, above)
}

/// The piece for "false" follows at once; that for "true" comes after it. A conditional jump
/// reaches 255 instructions, an unconditional one any.
fn decide(code: u16, operand: u32, on_false: Code, on_true: Code) -> Code {
    let mut all = match u8::try_from(on_false.len()) {
        Ok(distance) => vec![Instruction::branch(code, operand, distance, 0)],
        Err(_) => {
            let distance = u32::try_from(on_false.len()).unwrap_or(u32::MAX);
            vec![
                Instruction::branch(code, operand, 0, 1),
                Instruction::plain(JUMP, distance),
            ]
        }
    };
    all.extend(on_false);
    all.extend(on_true);
    all
}

/// `value` if all comparisons hold, else what follows the returned code. `wide` compares all 64
/// bits of arguments; calls of 32-bit architectures have 32.
pub(super) fn if_all(comparisons: &[ArgRule], wide: bool, value: u32) -> Code {
    let mut code = verdict(value);
    for comparison in comparisons.iter().rev() {
        // At most six comparisons of six instructions each.
        let miss = u8::try_from(code.len()).expect("a conjunction is short");
        let mut test = compare(comparison, wide, miss);
        test.append(&mut code);
        code = test;
    }
    code
}

/// Falls through to the code after it if the comparison holds, else jumps `miss` instructions
/// further.
fn compare(rule: &ArgRule, wide: bool, miss: u8) -> Code {
    let low_at = ARGUMENTS + 8 * rule.index;
    let (low_at, high_at) = if cfg!(target_endian = "little") {
        (low_at, low_at + 4)
    } else {
        (low_at + 4, low_at)
    };
    let [low, high] = halves(rule.value);
    let [low_two, high_two] = halves(rule.value_two);
    let branch = Instruction::branch;
    match rule.op {
        Operator::MaskedEqual => {
            let mut code = Vec::new();
            if wide {
                code.push(load(high_at));
                code.push(Instruction::plain(AND, high));
                code.push(branch(EQUAL, high_two, 0, miss + 3));
            }
            code.push(load(low_at));
            code.push(Instruction::plain(AND, low));
            code.push(branch(EQUAL, low_two, 0, miss));
            code
        }
        Operator::Equal => {
            let mut code = Vec::new();
            if wide {
                code.push(load(high_at));
                code.push(branch(EQUAL, high, 0, miss + 2));
            }
            code.push(load(low_at));
            code.push(branch(EQUAL, low, 0, miss));
            code
        }
        Operator::NotEqual => {
            let mut code = Vec::new();
            if wide {
                code.push(load(high_at));
                code.push(branch(EQUAL, high, 0, 2));
            }
            code.push(load(low_at));
            code.push(branch(EQUAL, low, miss, 0));
            code
        }
        Operator::Greater | Operator::GreaterOrEqual => {
            let test = if rule.op == Operator::Greater {
                GREATER
            } else {
                GREATER_OR_EQUAL
            };
            let mut code = Vec::new();
            if wide {
                code.push(load(high_at));
                code.push(branch(GREATER, high, 3, 0));
                code.push(branch(EQUAL, high, 0, miss + 2));
            }
            code.push(load(low_at));
            code.push(branch(test, low, 0, miss));
            code
        }
        Operator::Less | Operator::LessOrEqual => {
            let test = if rule.op == Operator::Less {
                GREATER_OR_EQUAL
            } else {
                GREATER
            };
            let mut code = Vec::new();
            if wide {
                code.push(load(high_at));
                code.push(branch(GREATER, high, miss + 3, 0));
                code.push(branch(EQUAL, high, 0, 2));
            }
            code.push(load(low_at));
            code.push(branch(test, low, miss, 0));
            code
        }
    }
}

/// The low and the high half.
fn halves(value: u64) -> [u32; 2] {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the halves are what is wanted"
    )]
    [value as u32, (value >> 32) as u32]
}
