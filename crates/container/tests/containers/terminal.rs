//! Containers with a terminal.

use std::{
    io::{Read, Write},
    os::fd::AsFd,
};

use rubelet_container::{Console, ExecLaunch, Stdio, exec, open_barrier};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::{
    Case,
    fixture::{ContainerFixture, created, process, script, started},
};

pub(crate) const CASES: &[Case] = &[
    ("terminal::of_a_container", of_a_container),
    ("terminal::of_an_exec", of_an_exec),
    ("terminal::without_devpts", without_devpts),
];

const SIZE: Stdio = Stdio::Console(Console {
    height: 20,
    width: 30,
});

/// Reads until the other side is closed, which a terminal tells as an error.
fn read(master: std::os::fd::OwnedFd) -> String {
    let mut master = std::fs::File::from(master);
    let mut text = Vec::new();
    let mut bytes = [0; 256];
    while let Ok(length @ 1..) = master.read(&mut bytes) {
        text.extend_from_slice(&bytes[..length]);
    }
    String::from_utf8(text).unwrap()
}

fn of_a_container() {
    let place = ContainerFixture::new();
    let mut spec = script(
        "tty; stty size; read word; echo got $word; stat -c '%t:%T' /dev/console; echo t > /dev/tty; echo c > /dev/console",
    );
    spec.process.terminal = true;
    spec.process.user.uid = 1000;
    let mut launching = place.launch(&spec, SIZE, Default::default(), None).unwrap();
    let (console, _) = created(&mut launching.reports).unwrap();
    open_barrier(launching.barrier);
    started(&mut launching.reports).unwrap();
    let master = console.unwrap();
    std::fs::File::from(master.try_clone().unwrap())
        .write_all(b"word\n")
        .unwrap();
    let text = read(master);
    waitid(
        WaitId::PidFd(launching.pidfd.as_fd()),
        WaitIdOptions::EXITED,
    )
    .unwrap();
    for line in ["/dev/pts/0", "20 30", "got word", "88:0", "t", "c"] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
}

fn of_an_exec() {
    let place = ContainerFixture::new();
    let spec = script("echo; sleep 1000");
    let running = place.start(&spec, Default::default());
    let mut process = process(&["sh", "-c", "tty; stty size; kill -INT $$"]);
    process.terminal = true;
    let launching = exec(ExecLaunch {
        target: running.pidfd.as_fd(),
        spec: &spec,
        process: &process,
        stdio: SIZE,
        cgroup: &place.target,
        seccomp: None,
    });
    let mut launching = launching.unwrap();
    let (console, _) = created(&mut launching.reports).unwrap();
    open_barrier(launching.barrier);
    started(&mut launching.reports).unwrap();
    let text = read(console.unwrap());
    let ended = waitid(
        WaitId::PidFd(launching.pidfd.as_fd()),
        WaitIdOptions::EXITED,
    );
    assert_eq!(text, "/dev/pts/0\r\n20 30\r\n");
    assert_eq!(
        ended.unwrap().unwrap().terminating_signal(),
        Some(libc::SIGINT)
    );
}

fn without_devpts() {
    let place = ContainerFixture::new();
    let mut spec = script("true");
    spec.mounts.retain(|mount| mount.kind != "devpts");
    let mut launching = place.launch(&spec, SIZE, Default::default(), None).unwrap();
    let error = created(&mut launching.reports).unwrap_err();
    assert!(
        error.contains("cannot create a terminal in the container's /dev/pts"),
        "{error}"
    );
}
