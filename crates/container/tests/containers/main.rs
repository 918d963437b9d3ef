//! Starts real containers, as root. Every test runs in a process of its own with a single thread,
//! as in the shim: this program executes itself for each of them.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a test, without the harness that the lints know"
)]

mod advisories;
mod attacks;
mod bench;
mod exec;
mod fixture;
mod mounts;
mod pods;
mod process;
mod terminal;
mod userns;

use std::{
    io::{Read, Seek, SeekFrom},
    process::{Command, ExitCode, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, pidfd_open},
    time::Timespec,
};

/// A test, by its name.
type Case = (&'static str, fn());

fn cases() -> Vec<Case> {
    [
        process::CASES,
        mounts::CASES,
        terminal::CASES,
        exec::CASES,
        pods::CASES,
        userns::CASES,
        attacks::CASES,
        advisories::CASES,
        bench::CASES,
    ]
    .concat()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = args.as_slice()
        && flag == "--case"
    {
        if name == "advisories::exchanger" {
            advisories::exchanger();
        }
        let case = cases().into_iter().find(|(known, _)| known == name);
        case.unwrap().1();
        return ExitCode::SUCCESS;
    }
    let has = |option: &str| args.iter().any(|arg| arg == option);
    if has("--list") {
        // None of them is ignored.
        for (name, _) in cases().iter().filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let exact = has("--exact");
    let fits = |name: &str, wanted: &str| {
        if exact {
            name == wanted
        } else {
            name.contains(wanted)
        }
    };
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| fits(name, wanted));
    fixture::remove_leftovers();
    let mut failed = 0;
    for (name, _) in cases().iter().filter(|(name, _)| is_wanted(name)) {
        let (good, output) = run(name);
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        if !good || has("--nocapture") {
            println!("{output}");
        }
        failed += u32::from(!good);
    }
    if failed > 0 {
        println!("{failed} failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Most time for one test.
const LONGEST: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// Runs one test; whether it went well, and what it said.
fn run(name: &str) -> (bool, String) {
    let mut output = tempfile::tempfile().unwrap();
    let mut test = Command::new("/proc/self/exe")
        .args(["--case", name])
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output.try_clone().unwrap())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&test);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&LONGEST)).unwrap();
    if ended == 0 {
        test.kill().unwrap();
    }
    let status = test.wait().unwrap();
    fixture::remove_leftovers();
    let mut text = String::new();
    output.seek(SeekFrom::Start(0)).unwrap();
    output.read_to_string(&mut text).unwrap();
    (status.success(), text)
}
