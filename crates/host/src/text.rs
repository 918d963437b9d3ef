//! The program's own code in memory. The kernel maps the pages around each one that is needed, so
//! that after a burst of work a process seems to hold most of its program.

use std::{fs, path::Path};

/// Takes the pages of this program's code out of the process; what is needed again comes back from
/// the page cache without a look at the disk. Returns how many bytes of address space that were.
/// Worth it after a burst of work, not in a loop.
///
/// Source: madvise(2), `MADV_DONTNEED` on private mappings of files.
pub fn release() -> usize {
    let Ok(program) = fs::read_link("/proc/self/exe") else {
        return 0;
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut released = 0;
    for (start, len) in code_of(&maps, &program) {
        let address = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
        // SAFETY: the mapping is private, executable and not writable, and was never written to:
        // its pages are those of the file. Dropping them loses nothing, and the kernel maps them
        // again at the next access, also for the code that runs now.
        #[allow(unsafe_code)]
        let dropped = unsafe { libc::madvise(address, len, libc::MADV_DONTNEED) };
        if dropped == 0 {
            released += len;
        }
    }
    released
}

/// Start and length of the mappings that hold code of a program and can't be written to. Other
/// read-only ones may hold addresses that the loader has put in.
fn code_of(maps: &str, program: &Path) -> Vec<(usize, usize)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let path = words.nth(3)?;
        if rights != "r-xp" || Path::new(path) != program {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        Some((start, end.checked_sub(start)?))
    };
    maps.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_itself_is_meant() {
        let maps = "\
55d0c0000000-55d0c0100000 r--p 00000000 fe:00 42    /usr/bin/rubelet
55d0c0100000-55d0c0a00000 r-xp 00100000 fe:00 42    /usr/bin/rubelet
55d0c0a00000-55d0c0b00000 rw-p 00a00000 fe:00 42    /usr/bin/rubelet
7f0000000000-7f0000100000 r-xp 00000000 fe:00 43    /usr/lib/libc.so.6
7f0000200000-7f0000201000 r-xp 00000000 00:00 0
nonsense
";
        let found = code_of(maps, Path::new("/usr/bin/rubelet"));
        assert_eq!(found, [(0x55d0_c010_0000, 0x90_0000)]);
    }

    #[test]
    fn the_program_goes_on_without_noticing() {
        assert!(release() > 0);
        let sum: u64 = (0..1000).sum();
        assert_eq!(sum, 499_500);
        assert!(release() > 0, "again and again");
    }
}
