//! Resident pages of the program and its libraries. The kernel maps the pages around each one that
//! is accessed, so that after a burst of work most of the program seems to be resident.

use std::fs;

use crate::meminfo::kib_field;

/// Unmaps clean, read-only pages of mapped files from the process; pages that are needed again come
/// from the page cache without disk I/O. Returns the size of these mappings in bytes. Useful after
/// a burst of work, not in a loop.
///
/// Source: madvise(2), `MADV_DONTNEED` on private mappings of files.
pub fn release() -> usize {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut released = 0;
    for (start, len) in untouched(&maps) {
        let address = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
        // SAFETY: the mapping is private, can't be written to, and none of its pages is a copy of
        // the process's own: all are those of the file. Dropping them loses nothing, and the kernel
        // maps them again at the next access, also for the code that runs now.
        #[allow(unsafe_code)]
        let dropped = unsafe { libc::madvise(address, len, libc::MADV_DONTNEED) };
        if dropped == 0 {
            released += len;
        }
    }
    released
}

/// Start and length of the private file mappings that are read-only and have no modified page:
/// relocations modify pages, which then are in memory or swapped out.
///
/// Source: proc(5), `/proc/PID/smaps`.
fn untouched(smaps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut candidate = None;
    let mut own_pages = None;
    for line in smaps.lines() {
        if let Some(size) = kib_field(line, "Anonymous") {
            own_pages = Some(size);
        } else if let Some(size) = kib_field(line, "Swap") {
            let own_pages = own_pages.take();
            if let (Some(range), Some(0), 0) = (candidate.take(), own_pages, size) {
                found.push(range);
            }
        } else if let Some(mapping) = mapping(line) {
            candidate = mapping.of_a_file.then_some(mapping.range);
            own_pages = None;
        }
    }
    found
}

/// The first line of a mapping.
struct Mapping {
    /// Start and length.
    range: (usize, usize),
    /// True if it is a private, read-only file mapping.
    of_a_file: bool,
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let path = words.nth(3);
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some(Mapping {
        range: (start, end.checked_sub(start)?),
        of_a_file: matches!(rights, "r-xp" | "r--p")
            && path.is_some_and(|path| path.starts_with('/')),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smaps(line: &str, anonymous: u32, swap: u32) -> String {
        format!(
            "{line}\nSize:  1024 kB\nRss:  64 kB\nAnonymous:      {anonymous} kB\nKSM:  0 kB\n\
             Swap:        {swap} kB\nSwapPss:     0 kB\nVmFlags: rd mr mw me sd \n"
        )
    }

    #[test]
    fn only_pages_of_files_that_were_never_written_to_are_meant() {
        let program = "00000000 fe:00 42    /usr/bin/rubelet";
        let maps = [
            smaps(&format!("10000-20000 r--p {program}"), 0, 0),
            smaps(&format!("20000-50000 r-xp {program} (deleted)"), 0, 0),
            smaps(&format!("50000-60000 r--p {program}"), 4, 0),
            smaps(&format!("60000-70000 r--p {program}"), 0, 4),
            smaps(&format!("70000-80000 rw-p {program}"), 0, 0),
            smaps(&format!("80000-90000 r--s {program}"), 0, 0),
            smaps("90000-a0000 r--p 00000000 00:00 0 ", 0, 0),
            smaps("a0000-b0000 r-xp 00000000 00:00 0      [vdso]", 0, 0),
            "nonsense\nb0000-c0000 r-xp 00000000 fe:00 42 /usr/lib/libc.so.6\nSwap: 0 kB\n".into(),
        ];
        let found = untouched(&maps.concat());
        assert_eq!(found, [(0x1_0000, 0x1_0000), (0x2_0000, 0x3_0000)]);
    }

    #[test]
    fn the_program_goes_on_without_noticing() {
        static WORDS: [&str; 3] = ["kept", "by", "addresses"];
        assert!(release() > 0);
        let sum: u64 = (0..1000).sum();
        assert_eq!(sum, 499_500);
        assert!(release() > 0, "again and again");
        assert_eq!(WORDS.join(" "), "kept by addresses");
    }
}
