//! Plugins of an earlier agent that still run because that agent was killed.
//!
//! `PR_SET_PDEATHSIG` does not work here: the signal is sent when the thread that started the
//! plugin exits, and that is a thread of a pool. So plugins are marked in their environment.

use std::{ffi::OsString, fs, os::unix::ffi::OsStrExt, path::Path};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The directory of the network's records, which only one agent uses at a time.
const NETWORK: &str = "RUBELET_NETWORK";

/// The agent that started the plugin.
const AGENT: &str = "RUBELET_AGENT_PID";

/// The environment variables that mark a plugin.
pub(super) fn marks(state_dir: &Path) -> [(&'static str, OsString); 2] {
    [
        (NETWORK, state_dir.into()),
        (AGENT, std::process::id().to_string().into()),
    ]
}

/// Kills plugins that earlier agents started for this network, with their process groups. Daemons
/// that a plugin moved into another group are kept. Returns the killed ones.
pub(super) fn kill(state_dir: &Path) -> Vec<String> {
    let groups = processes(None);
    let leaders: Vec<i32> = groups
        .iter()
        .filter(|&&(pid, group)| pid == group && is_left(pid, state_dir))
        .map(|&(pid, _)| pid)
        .collect();
    let mut killed = Vec::new();
    for leader in leaders {
        let name = fs::read_to_string(format!("/proc/{leader}/comm")).unwrap_or_default();
        if end(leader, |pid| is_left(pid, state_dir)) {
            killed.push(format!(
                "CNI plugin {} (process {leader}) of an agent that died",
                name.trim()
            ));
        }
        // The kernel does not reuse a PID while it is the ID of a process group.
        for (pid, _) in processes(Some(leader)) {
            end(pid, |pid| group_of(pid) == Some(leader));
        }
    }
    killed
}

/// Processes with their groups.
fn processes(of: Option<i32>) -> Vec<(i32, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let group = group_of(pid)?;
            (pid > 1 && group > 1 && of.is_none_or(|of| of == group)).then_some((pid, group))
        })
        .collect()
}

fn group_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name in parentheses may contain anything, also `)`; after it come state, parent
    // and process group.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

/// Whether a process is marked with this network and another agent.
fn is_left(pid: i32, state_dir: &Path) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let value = |name: &str| {
        environment
            .split(|&byte| byte == 0)
            .find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    value(NETWORK) == Some(state_dir.as_os_str().as_bytes())
        && value("CNI_COMMAND").is_some()
        && value(AGENT).is_some_and(|agent| agent != std::process::id().to_string().as_bytes())
}

/// Kills a process by its pidfd. Checks the process again after opening the pidfd, because the PID
/// may have been reused.
fn end(pid: i32, is_meant: impl Fn(i32) -> bool) -> bool {
    let held = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    held.is_some_and(|held| is_meant(pid) && pidfd_send_signal(&held, Signal::KILL).is_ok())
}
