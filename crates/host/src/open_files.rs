//! The limit of open files: raised for this process, and as before for the programs that it starts.
//! Programs that use `select`, or that iterate over all possible descriptors, work badly with an
//! agent's limit.

use std::{fs, io, os::unix::process::CommandExt as _, process::Command, sync::OnceLock};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The kernel's maximum.
const NR_OPEN: &str = "/proc/sys/fs/nr_open";
/// An agent with a lower limit can do nothing, not even report it.
const LEAST: u64 = 256;

/// The original limits of this process, once they were changed.
static FORMER: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of this process to `wanted`: the soft limit becomes that number, a lower hard
/// limit is raised to it. Programs started with [`limit_as_before`] get the original limits.
/// Returns what could not be done, as a sentence. Call it once, before any program is started.
#[must_use]
pub fn allow(wanted: u64) -> Option<String> {
    let most = fs::read_to_string(NR_OPEN)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(u64::MAX);
    let now = getrlimit(Resource::Nofile);
    let chosen = choose(wanted, now, most);
    // Children get the original limits even if only one of the two was changed.
    let set = |limits| {
        let done = setrlimit(Resource::Nofile, limits);
        if done.is_ok() {
            let _ = FORMER.set(now);
        }
        done
    };
    if chosen == now || set(chosen).is_ok() {
        return bounded(wanted, chosen, most);
    }
    // Only CAP_SYS_RESOURCE raises the hard limit.
    let possible = within(chosen, now);
    let held = match set(possible) {
        Ok(()) => possible,
        Err(_) => now,
    };
    Some(format!(
        "cannot raise the limit of open files to {}: the kernel does not permit it, so it is {}; give the agent CAP_SYS_RESOURCE, or name a lower number",
        shown(chosen.current),
        shown(held.current)
    ))
}

/// Makes the program start with the original limits of this process.
pub fn limit_as_before(command: &mut Command) -> &mut Command {
    match FORMER.get() {
        Some(former) => limit(command, *former),
        // Nothing was changed.
        None => command,
    }
}

#[expect(
    unsafe_code,
    reason = "the standard library has nothing else that runs between fork and execve"
)]
fn limit(command: &mut Command, former: Rlimit) -> &mut Command {
    let set = move || -> io::Result<()> {
        if setrlimit(Resource::Nofile, former).is_err() {
            // fs.nr_open was lowered below the hard limit since.
            let lower = Rlimit {
                maximum: former.current,
                ..former
            };
            // A program with another limit is better than none.
            let _ = setrlimit(Resource::Nofile, lower);
        }
        Ok(())
    };
    // SAFETY: between fork and execve nothing but the system call is made: no memory is allocated,
    // no lock taken.
    unsafe { command.pre_exec(set) }
}

/// The desired limits. `most` is the kernel's maximum, and it rejects a hard limit above that even
/// if it is already in force.
fn choose(wanted: u64, now: Rlimit, most: u64) -> Rlimit {
    let target = wanted.max(LEAST).min(most);
    let hard = now.maximum.unwrap_or(u64::MAX);
    Rlimit {
        current: Some(target),
        maximum: Some(hard.max(target).min(most)),
    }
}

/// The same without raising the hard limit.
fn within(chosen: Rlimit, now: Rlimit) -> Rlimit {
    let hard = now.maximum.unwrap_or(u64::MAX);
    Rlimit {
        current: chosen.current.map(|soft| soft.min(hard)),
        maximum: now.maximum,
    }
}

/// The message if the chosen limit differs from the requested one.
fn bounded(wanted: u64, chosen: Rlimit, most: u64) -> Option<String> {
    let why = match chosen.current {
        Some(soft) if soft < wanted => format!("fs.nr_open is {most}"),
        Some(soft) if soft > wanted => "fewer are not enough for an agent".to_owned(),
        _ => return None,
    };
    Some(format!(
        "the limit of open files is {} and not {wanted}: {why}",
        shown(chosen.current)
    ))
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests;
