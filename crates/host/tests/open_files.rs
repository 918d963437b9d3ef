//! The limit of open files is raised for this process alone, and not for what it starts. A program of
//! its own, for limits belong to a process.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
)]

use std::process::Command;

use rubelet_host::open_files::{allow, limit_as_before};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits of a program, soft and hard.
fn limits_of(command: &mut Command) -> String {
    let output = command.args(["-c", "ulimit -Sn; ulimit -Hn"]).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn this_process_may_open_more_and_what_it_starts_may_not() {
    // A higher hard limit needs a right that not every root has.
    let hard = getrlimit(Resource::Nofile).maximum.unwrap();
    let limits = |soft| Rlimit {
        current: Some(soft),
        maximum: Some(hard),
    };
    let wanted = (hard / 2).min(4000);
    setrlimit(Resource::Nofile, limits(300)).unwrap();
    let [given, raised] = [300, wanted].map(|soft| format!("{soft}\n{hard}\n"));
    let child = || limits_of(limit_as_before(&mut Command::new("sh")));
    assert_eq!(child(), given, "nothing was changed yet");

    assert_eq!(allow(wanted), None);
    assert_eq!(getrlimit(Resource::Nofile), limits(wanted));
    // More than the limit that children get.
    let files: Vec<_> = (0..wanted - 100)
        .map(|_| std::fs::File::open("/dev/null").unwrap())
        .collect();
    assert_eq!(child(), given);
    assert_eq!(limits_of(&mut Command::new("sh")), raised);
    drop(files);
}
