//! What this process uses.

use std::{fs, time::Duration};

use rustix::{
    param,
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

/// What this process uses. What the kernel does not tell is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnProcess {
    /// CPU time of its threads, those that have ended included.
    pub cpu: Duration,
    /// Resident memory in bytes.
    pub resident_memory: Option<u64>,
    /// Its address space in bytes.
    pub virtual_memory: Option<u64>,
    /// Open file descriptors.
    pub open_files: Option<u64>,
    /// Their limit; `None` if there is none.
    pub open_files_limit: Option<u64>,
}

impl OwnProcess {
    /// Reads the numbers.
    #[must_use]
    pub fn read() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let mut pages = statm.split(' ').map(|pages| pages.parse::<u64>().ok());
        let mut bytes = || Some(pages.next()?? * param::page_size() as u64);
        let (virtual_memory, resident_memory) = (bytes(), bytes());
        // The directory itself is open meanwhile.
        let open_files = fs::read_dir("/proc/self/fd").map(|all| all.count().saturating_sub(1));
        Self {
            cpu: Duration::new(
                cpu.tv_sec.try_into().unwrap_or_default(),
                cpu.tv_nsec.try_into().unwrap_or_default(),
            ),
            resident_memory,
            virtual_memory,
            open_files: open_files.ok().map(|count| count as u64),
            open_files_limit: getrlimit(Resource::Nofile).current,
        }
    }
}

/// When this process started, in hundredths of a second since 1970.
#[must_use]
pub fn started_at() -> Option<u64> {
    let boot = boot_second(&fs::read_to_string("/proc/stat").ok()?)?;
    Some(boot * 100 + started_after_boot()?)
}

/// When this process started, in hundredths of a second since the boot of the machine.
#[must_use]
pub fn started_after_boot() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    Some(start_ticks(&stat)? * 100 / param::clock_ticks_per_second())
}

/// The start in ticks since the boot, of `/proc/PID/stat`: source proc_pid_stat(5). The name of the program, in
/// parentheses, may have any characters.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// The second of the boot, of `/proc/stat`.
fn boot_second(stat: &str) -> Option<u64> {
    let second = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    second.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_time_and_files() {
        let file = fs::File::open("/dev/null").unwrap();
        let found = OwnProcess::read();
        let resident = found.resident_memory.unwrap();
        assert!(
            (1 << 19..1 << 36).contains(&resident)
                && found.virtual_memory > Some(resident)
                && found.open_files > Some(3)
                && found.open_files <= found.open_files_limit
                && found.cpu > Duration::ZERO,
            "{found:?}"
        );
        drop(file);
    }

    #[test]
    fn the_start_of_this_process_is_before_now_and_after_the_boot() {
        let started = started_at().unwrap();
        let boot = boot_second(&fs::read_to_string("/proc/stat").unwrap()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let now = file.as_file().metadata().unwrap().modified().unwrap();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        // The kernel shows the second of the boot rounded.
        let latest = now.as_secs() * 100 + 200;
        assert!((boot * 100..latest).contains(&started), "{started} {now:?}");
    }

    #[test]
    fn a_name_of_a_program_deceives_nobody() {
        let stat = "7 (a) S 1 (b) 1 c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 321 9 9";
        assert_eq!(start_ticks(stat), Some(321));
        assert_eq!(start_ticks("7 (a"), None);
        assert_eq!(
            boot_second("cpu 1\nbtime 1800000000\n"),
            Some(1_800_000_000)
        );
        assert_eq!(boot_second("intr 1\n"), None);
    }
}
