//! Programs of 32-bit x86 that create sockets, for tests of seccomp filters. Written by shell
//! scripts.

/// `AF_INET`.
pub const INET: u8 = 2;
/// `AF_ALG`.
pub const ALG: u8 = 38;
/// `AF_VSOCK`.
pub const VSOCK: u8 = 40;

/// A program of 32-bit x86 for Linux with these instructions.
fn elf(code: &[u8]) -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    const HEADERS: u32 = 84;
    let length = HEADERS + u32::try_from(code.len()).expect("the program has only a few bytes");
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    for word in [1, BASE + HEADERS, 52, 0, 0, 0x0020_0034, 1, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    for word in [1, 0, BASE, BASE, length, length, 5, 0x1000] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(code);
    file
}

/// Exits with the negated result of the call, which is its error number.
const EXIT: [u8; 11] = [0xcd, 0x80, 0xf7, 0xd8, 0x89, 0xc3, 0xb8, 1, 0, 0, 0];

/// `socket(family, type, 0)` through `socketcall`.
#[must_use]
pub fn socketcall(family: u8) -> Vec<u8> {
    let mut code = vec![0x6a, 0, 0x6a, kind(family), 0x6a, family, 0x89, 0xe1];
    code.extend([0xbb, 1, 0, 0, 0, 0xb8, 102, 0, 0, 0]);
    code.extend(EXIT);
    code.extend([0xcd, 0x80]);
    elf(&code)
}

/// The same by the dedicated system call of Linux 4.3, 359.
#[must_use]
pub fn socket(family: u8) -> Vec<u8> {
    let mut code = vec![0xbb, family, 0, 0, 0, 0xb9, kind(family), 0, 0, 0];
    code.extend([0x31, 0xd2, 0xb8, 0x67, 1, 0, 0]);
    code.extend(EXIT);
    code.extend([0xcd, 0x80]);
    elf(&code)
}

/// `SOCK_STREAM`, or `SOCK_SEQPACKET` for `AF_ALG`.
fn kind(family: u8) -> u8 {
    if family == ALG { 5 } else { 1 }
}

/// A script that runs all of them and prints one number per line.
#[must_use]
pub fn script(programs: &[Vec<u8>]) -> String {
    let runs = programs.iter().map(|program| {
        let octal: String = program.iter().map(|byte| format!("\\{byte:03o}")).collect();
        format!("printf '{octal}' > /tmp/p; chmod 755 /tmp/p; /tmp/p; echo $?; rm /tmp/p; ")
    });
    format!("mkdir -p /tmp; {}", runs.collect::<String>())
}
