//! Compares the sections of two ELF programs.

use std::ops::Range;

/// `SHT_NOBITS`: the section takes no bytes of the file.
const NO_BITS: u32 = 8;

/// The differences of two programs as text; nothing if they are equal.
pub(super) fn difference(one: &[u8], other: &[u8]) -> Option<String> {
    if one == other {
        return None;
    }
    let Some((ours, theirs)) = sections(one).zip(sections(other)) else {
        return Some(format!("no ELF programs; {}", first_byte(one, other)));
    };
    let mut found = Vec::new();
    for (name, range) in &ours {
        match theirs.iter().find(|(other, _)| other == name) {
            None => found.push(format!("section `{name}` is in the first only")),
            Some((_, their)) => {
                let (a, b) = (&one[range.clone()], &other[their.clone()]);
                if a.len() != b.len() {
                    let (a, b) = (a.len(), b.len());
                    found.push(format!("section `{name}` has {a} and {b} bytes"));
                } else if a != b {
                    found.push(format!("section `{name}`: {}", first_byte(a, b)));
                }
            }
        }
    }
    for (name, _) in &theirs {
        if !ours.iter().any(|(our, _)| our == name) {
            found.push(format!("section `{name}` is in the second only"));
        }
    }
    if found.is_empty() {
        found.push(format!(
            "outside of the sections; {}",
            first_byte(one, other)
        ));
    }
    Some(found.join(", "))
}

fn first_byte(one: &[u8], other: &[u8]) -> String {
    let at = one.iter().zip(other).position(|(a, b)| a != b);
    match at {
        Some(at) => format!("first at byte {at:#x}"),
        None => format!("{} and {} bytes long", one.len(), other.len()),
    }
}

/// Names and positions of the sections of a 64-bit little-endian ELF file; nothing for other files.
fn sections(file: &[u8]) -> Option<Vec<(String, Range<usize>)>> {
    // Class 2 is 64 bits, data 1 is little-endian.
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = offset(file, 0x28)?;
    let size = usize::from(u16::from_le_bytes(bytes(file, 0x3a)?));
    let count = usize::from(u16::from_le_bytes(bytes(file, 0x3c)?));
    let names = usize::from(u16::from_le_bytes(bytes(file, 0x3e)?));
    let header = |number: usize| table.checked_add(number.checked_mul(size)?);
    let names = offset(file, header(names)?.checked_add(0x18)?)?;
    let mut found = Vec::new();
    for number in 0..count {
        let at = header(number)?;
        if u32::from_le_bytes(bytes(file, at.checked_add(4)?)?) == NO_BITS {
            continue;
        }
        let name = u32::from_le_bytes(bytes(file, at)?);
        let name = file.get(names.checked_add(usize::try_from(name).ok()?)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        let start = offset(file, at.checked_add(0x18)?)?;
        let end = start.checked_add(offset(file, at.checked_add(0x20)?)?)?;
        file.get(start..end)?;
        found.push((String::from_utf8_lossy(name).into_owned(), start..end));
    }
    Some(found)
}

fn offset(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes(file, at)?)).ok()
}

fn bytes<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_a_changed_byte_is_named() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(difference(&program, &program), None);
        let sections = sections(&program).unwrap();
        for name in [".text", ".rodata", ".data"] {
            let (_, range) = sections.iter().find(|(found, _)| found == name).unwrap();
            let mut changed = program.clone();
            changed[range.start + 3] ^= 1;
            assert_eq!(
                difference(&program, &changed).unwrap(),
                format!("section `{name}`: first at byte 0x3")
            );
        }
    }

    #[test]
    fn damaged_files_are_compared_too() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in [0, 5, 20, 63, 64, 1000, program.len() - 1] {
            assert!(difference(&program, &program[..length]).is_some());
        }
        let text = difference(b"abc", b"abd").unwrap();
        assert_eq!(text, "no ELF programs; first at byte 0x2");
    }
}
