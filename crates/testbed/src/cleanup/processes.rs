//! Kills the processes of one instance.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroups;
use crate::scratch::{MARKER, Scratch};
use crate::{proc, wait};

/// How long killed processes may take to exit.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// The ids of all processes of the instance: those started with its marker (the runtime, its
/// shims, agents), their descendants, and everything in its cgroups (containers).
#[must_use]
pub fn of(scratch: &Scratch) -> BTreeSet<u32> {
    let stats: HashMap<u32, proc::Stat> = proc::all_pids()
        .into_iter()
        .filter_map(|pid| Some((pid, proc::Stat::of(pid)?)))
        .filter(|(_, stat)| stat.state != 'Z')
        .collect();
    let mut found: BTreeSet<u32> = cgroups::members(scratch.tag());
    found.extend(stats.keys().copied().filter(|pid| {
        proc::environment_variable(*pid, MARKER).is_some_and(|tag| tag == scratch.tag())
    }));
    loop {
        let before = found.len();
        let children = stats
            .iter()
            .filter(|(_, stat)| found.contains(&stat.parent));
        found.extend(children.map(|(pid, _)| *pid).collect::<Vec<_>>());
        if found.len() == before {
            break;
        }
    }
    found.retain(|pid| stats.contains_key(pid) && *pid != std::process::id());
    found
}

/// Kills all processes of the instance and waits until they are gone.
///
/// # Errors
/// When some are still there after ten seconds.
pub(crate) fn kill_all(scratch: &Scratch) -> Result<()> {
    cgroups::thaw(scratch.tag());
    // Repeated: a process may have started another one between the scan and the kill.
    wait::until(
        &format!("the processes of {} have ended", scratch.tag()),
        END_TIMEOUT,
        || {
            // The pidfds come first: a PID that is reused after the second scan can't be hit.
            let handles: Vec<(u32, OwnedFd)> = of(scratch)
                .into_iter()
                .filter_map(|pid| Some((pid, handle(pid)?)))
                .collect();
            let still = of(scratch);
            let victims: Vec<&OwnedFd> = handles
                .iter()
                .filter(|(pid, _)| still.contains(pid))
                .map(|(_, fd)| fd)
                .collect();
            for victim in &victims {
                // It may have exited by itself in between.
                let _ = pidfd_send_signal(victim, Signal::KILL);
            }
            for victim in &victims {
                await_end(victim)?;
            }
            Ok(still.is_empty().then_some(()))
        },
    )
}

/// Kills the process `pid` and waits until it has exited.
///
/// # Errors
/// There is no such process, or it does not exit.
pub fn kill(pid: u32) -> Result<()> {
    let handle = handle(pid).with_context(|| format!("there is no process {pid}"))?;
    pidfd_send_signal(&handle, Signal::KILL).with_context(|| format!("cannot kill {pid}"))?;
    await_end(&handle)
}

fn handle(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn await_end(handle: &OwnedFd) -> Result<()> {
    let mut watched = [PollFd::new(handle, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: 2,
        tv_nsec: 0,
    };
    rustix::io::retry_on_intr(|| poll(&mut watched, Some(&limit)))
        .context("cannot wait for a process to end")?;
    Ok(())
}
