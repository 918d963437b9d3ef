//! How many files this process may open: raised for itself, and as it was for the programs that it
//! starts. Programs that use `select`, or that go through all descriptors they could have, do badly
//! with the limit of an agent.

use std::{fs, io, os::unix::process::CommandExt as _, process::Command, sync::OnceLock};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The highest limit that the kernel gives anybody.
const NR_OPEN: &str = "/proc/sys/fs/nr_open";
/// An agent that may open fewer can do nothing, not even say so.
const LEAST: u64 = 256;

/// The limits that this process was started with, once they were changed.
static FORMER: OnceLock<Rlimit> = OnceLock::new();

/// Has this process open up to `wanted` files: the soft limit becomes that number, the hard limit is
/// raised to it where it is lower. Programs started with [`limit_as_before`] get what it was. Returns
/// what could not be done, as a sentence. To be called once, before anything is started.
#[must_use]
pub fn allow(wanted: u64) -> Option<String> {
    let most = fs::read_to_string(NR_OPEN)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(u64::MAX);
    let now = getrlimit(Resource::Nofile);
    let chosen = choose(wanted, now, most);
    // Children get the former limits also where only one of the two was changed.
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

/// Has the program start with the limits that this process was started with.
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
            // Somebody has lowered fs.nr_open below the hard limit since.
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

/// The limits that are wanted. `most` is what the kernel gives at all, and it refuses a hard limit
/// above that also where there is one.
fn choose(wanted: u64, now: Rlimit, most: u64) -> Rlimit {
    let target = wanted.max(LEAST).min(most);
    let hard = now.maximum.unwrap_or(u64::MAX);
    Rlimit {
        current: Some(target),
        maximum: Some(hard.max(target).min(most)),
    }
}

/// The same without a higher hard limit.
fn within(chosen: Rlimit, now: Rlimit) -> Rlimit {
    let hard = now.maximum.unwrap_or(u64::MAX);
    Rlimit {
        current: chosen.current.map(|soft| soft.min(hard)),
        maximum: now.maximum,
    }
}

/// What is to be told of a number that is not the one that was asked for.
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
mod tests {
    use super::*;

    fn limits(soft: u64, hard: u64) -> Rlimit {
        Rlimit {
            current: Some(soft),
            maximum: Some(hard),
        }
    }

    #[test]
    fn the_soft_limit_becomes_what_is_wanted_and_the_hard_one_is_never_lowered() {
        let most = 1_048_576;
        for (wanted, now, chosen) in [
            // As systemd starts services.
            (1_000_000, (1024, 524_288), (1_000_000, 1_000_000)),
            (1_000_000, (1024, 1024), (1_000_000, 1_000_000)),
            (4096, (1024, 524_288), (4096, 524_288)),
            // A limit is a limit: it is lowered too.
            (4096, (65_536, 524_288), (4096, 524_288)),
            (2_000_000, (1024, 4096), (most, most)),
            // fs.nr_open was lowered after this hard limit was given.
            (4096, (1024, 2_000_000), (4096, most)),
            (0, (1024, 4096), (LEAST, 4096)),
        ] {
            let (soft, hard) = now;
            let found = choose(wanted, limits(soft, hard), most);
            assert_eq!(found, limits(chosen.0, chosen.1), "{wanted} of {now:?}");
        }
        let unlimited = Rlimit {
            current: Some(1024),
            maximum: None,
        };
        assert_eq!(choose(5000, unlimited, most), limits(5000, most));
    }

    #[test]
    fn without_the_right_to_raise_the_hard_limit_it_bounds_the_soft_one() {
        let now = limits(1024, 4096);
        let chosen = choose(1_000_000, now, 1_048_576);
        assert_eq!(within(chosen, now), limits(4096, 4096));
        let chosen = choose(2000, now, 1_048_576);
        assert_eq!(within(chosen, now), limits(2000, 4096));
    }

    #[test]
    fn only_a_number_that_is_not_the_wanted_one_is_told() {
        let now = limits(1024, 4096);
        let told = |wanted, most| bounded(wanted, choose(wanted, now, most), most);
        assert_eq!(told(1_000_000, 1_048_576), None);
        let text = told(1_000_000, 65_536).unwrap();
        assert_eq!(
            text,
            "the limit of open files is 65536 and not 1000000: fs.nr_open is 65536"
        );
        let text = told(3, 65_536).unwrap();
        assert!(
            text.ends_with("256 and not 3: fewer are not enough for an agent"),
            "{text}"
        );
    }
}
