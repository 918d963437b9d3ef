//! A process that is stopped in the middle of a call, as a debugger or a frozen cgroup does.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::{Child, Command, Stdio},
};

use rubelet_shim::wire;
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{PATIENCE, wait_until};

/// Set in a process that only receives, from its standard input.
const RECEIVER: &str = "RUBELET_TEST_RECEIVER";

#[test]
fn a_receiver_continues_after_a_stop() {
    if std::env::var_os(RECEIVER).is_some() {
        return receiver();
    }
    let (mut here, there) = UnixStream::pair().unwrap();
    there.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["a_receiver_continues_after_a_stop", "--nocapture"])
        .env(RECEIVER, "1")
        .stdin(OwnedFd::from(there))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let receiving = format!("{} ", libc::SYS_recvmsg);
    wait_until("recvmsg", || {
        has_task(&child, |task| read(task, "syscall").starts_with(&receiving))
    });
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).unwrap();
    let is_stopped = |task: &Path| read(task, "stat").contains(") T ");
    wait_until("the stop", || has_task(&child, is_stopped));
    kill_process(pid, Signal::CONT).unwrap();
    wait_until("the continuation", || {
        has_task(&child, |task| !is_stopped(task))
    });
    // Without a receiver any more, the output below says why.
    let _ = here.write_all(b"hello");
    let mut output = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success(), "{output}");
    assert!(output.contains("received 5 bytes"), "{output}");
}

#[expect(clippy::print_stdout, reason = "the test reads it")]
fn receiver() {
    let got = wire::receive(std::io::stdin(), &mut [0; 8], &mut Vec::new()).unwrap();
    println!("received {got} bytes");
}

fn read(task: &Path, file: &str) -> String {
    fs::read_to_string(task.join(file)).unwrap_or_default()
}

/// Whether one of the threads of `child` is so, or none is left.
fn has_task(child: &Child, is_so: impl Fn(&Path) -> bool) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id()));
    let tasks: Vec<_> = tasks.into_iter().flatten().flatten().collect();
    tasks.is_empty() || tasks.iter().any(|task| is_so(&task.path()))
}
