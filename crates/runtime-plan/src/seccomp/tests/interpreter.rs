//! Classic BPF as the kernel executes it for seccomp.

/// `struct seccomp_data` without the instruction pointer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) number: u32,
    pub(super) audit: u32,
    pub(super) args: [u64; 6],
}

impl Call {
    fn memory(&self) -> [u8; 64] {
        let mut memory = [0; 64];
        memory[..4].copy_from_slice(&self.number.to_ne_bytes());
        memory[4..8].copy_from_slice(&self.audit.to_ne_bytes());
        for (index, argument) in self.args.iter().enumerate() {
            let at = 16 + 8 * index;
            memory[at..at + 8].copy_from_slice(&argument.to_ne_bytes());
        }
        memory
    }
}

/// Executes a program. Panics where the kernel would refuse to load it: at an unknown instruction,
/// a load that is not aligned or beyond the data, a way past the end.
pub(super) fn run(program: &[u8], call: &Call) -> u32 {
    assert_eq!(program.len() % 8, 0);
    let program: Vec<&[u8]> = program.chunks(8).collect();
    let memory = call.memory();
    let mut accumulator = 0u32;
    let mut at = 0;
    loop {
        let one = program[at];
        let code = u16::from_ne_bytes(one[..2].try_into().unwrap());
        let (on_true, on_false) = (usize::from(one[2]), usize::from(one[3]));
        let k = u32::from_ne_bytes(one[4..].try_into().unwrap());
        let mut jump = |holds: bool| at += if holds { on_true } else { on_false };
        match code {
            0x20 => {
                let from = usize::try_from(k).unwrap();
                assert_eq!(from % 4, 0);
                accumulator = u32::from_ne_bytes(memory[from..from + 4].try_into().unwrap());
            }
            0x54 => accumulator &= k,
            0x05 => at += usize::try_from(k).unwrap(),
            0x15 => jump(accumulator == k),
            0x25 => jump(accumulator > k),
            0x35 => jump(accumulator >= k),
            0x06 => return k,
            _ => panic!("unknown instruction {code:#x} at {at}"),
        }
        at += 1;
    }
}
