//! Process information from the kernel: state, memory, CPU time, environment.

use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::clock;

/// The part of `/proc/PID/stat` that the test bed needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// One letter, `Z` for a zombie.
    pub state: char,
    /// The parent's process id.
    pub parent: u32,
    /// CPU time in user and kernel mode, in clock ticks.
    pub cpu_ticks: u64,
    /// When the process started, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// The state of process `pid`, or `None` when there is no such process.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The program's name is in parentheses and may contain spaces and parentheses itself.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: u32::try_from(number(1)?).ok()?,
            cpu_ticks: number(11)? + number(12)?,
            start_ticks: number(19)?,
        })
    }
}

/// CPU time that process `pid` has used so far.
#[must_use]
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let ticks = Stat::of(pid)?.cpu_ticks;
    Some(Duration::from_millis(
        ticks * 1000 / rustix::param::clock_ticks_per_second(),
    ))
}

/// Resident memory of process `pid` (`VmRSS`), in bytes.
#[must_use]
pub fn rss_bytes(pid: u32) -> Option<u64> {
    in_bytes(&read(pid, "status")?, "VmRSS:")
}

/// Peak resident memory of process `pid` (`VmHWM`), in bytes.
#[must_use]
pub fn peak_rss_bytes(pid: u32) -> Option<u64> {
    in_bytes(&read(pid, "status")?, "VmHWM:")
}

/// Proportional set size of process `pid`, in which shared memory counts in equal parts (`Pss`), in
/// bytes.
#[must_use]
pub fn pss_bytes(pid: u32) -> Option<u64> {
    in_bytes(&read(pid, "smaps_rollup")?, "Pss:")
}

/// Resident memory of process `pid` that is not of files (`RssAnon`), in bytes.
#[must_use]
pub fn anonymous_bytes(pid: u32) -> Option<u64> {
    in_bytes(&read(pid, "status")?, "RssAnon:")
}

/// Private memory of process `pid`, in bytes.
#[must_use]
pub fn private_bytes(pid: u32) -> Option<u64> {
    let text = read(pid, "smaps_rollup")?;
    Some(in_bytes(&text, "Private_Clean:")? + in_bytes(&text, "Private_Dirty:")?)
}

fn read(pid: u32, file: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()
}

/// The size of a field, which the kernel reports in KiB.
fn in_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Waits for process `pid` in a thread, whose result is the wall time of the exit.
///
/// # Errors
/// There is no such process.
pub fn end_of(pid: u32) -> Result<JoinHandle<Result<SystemTime>>> {
    let pid = checked(pid)?;
    let process = pidfd_open(pid, PidfdFlags::empty())
        .with_context(|| format!("cannot open process {}", pid.as_raw_nonzero()))?;
    Ok(std::thread::spawn(move || {
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        loop {
            match poll(&mut fds, None).map_err(io::Error::from) {
                Ok(_) => return Ok(clock::wall()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot wait for a process"),
            }
        }
    }))
}

/// Kills process `pid` with SIGKILL; the wall time just before.
///
/// # Errors
/// There is no such process.
pub fn kill9(pid: u32) -> Result<SystemTime> {
    let pid = checked(pid)?;
    let at = clock::wall();
    kill_process(pid, Signal::KILL)
        .with_context(|| format!("cannot kill process {}", pid.as_raw_nonzero()))?;
    Ok(at)
}

/// Sends a signal to an unreaped child, so that its PID can't be reused.
pub(crate) fn signal(child: &Child, signal: Signal) -> Result<()> {
    let pid = checked(child.id())?;
    kill_process(pid, signal).with_context(|| format!("cannot signal process {}", child.id()))
}

fn checked(pid: u32) -> Result<Pid> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    raw.with_context(|| format!("{pid} is not a process id"))
}

/// The ids of all processes.
#[must_use]
pub fn all_pids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// What the descriptors of a process are open on, such as `socket:[17]`; none if it has exited.
#[must_use]
pub fn open_files(pid: u32) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .collect()
}

/// The value of an environment variable that process `pid` was started with.
#[must_use]
pub(crate) fn environment_variable(pid: u32, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&environment);
    text.split('\0')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 7 42 42 0 -1 4194304 1 2 3 4 30 12 0 0 20 0 1 0 9876 1 2";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            stat,
            Stat {
                state: 'S',
                parent: 7,
                cpu_ticks: 42,
                start_ticks: 9876
            }
        );
    }

    #[test]
    fn this_process_has_memory_and_a_parent() {
        let me = std::process::id();
        assert!(rss_bytes(me).unwrap() > 100 * 1024);
        assert!(Stat::of(me).unwrap().parent > 0);
        assert!(all_pids().contains(&me));
    }

    #[test]
    fn a_missing_process_has_no_values() {
        assert_eq!(rss_bytes(u32::MAX), None);
        assert_eq!(cpu_time(u32::MAX), None);
    }
}
