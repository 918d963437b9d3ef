//! Processes that join a container, with each runtime.

use std::{
    io::{Read as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
};

use rubelet_shim::protocol::{
    Call, Event, FailureKind, ShimReply, SignalTarget, StartExec, StreamFds,
};

use crate::fixture::{
    Recipe, Shim, assert_failure, failure, open_files, process, settled_descriptors, wait_until,
    with_each_runtime,
};

fn start(exec_id: &str, terminal: bool, args: &[&str], streams: StreamFds) -> Call {
    Call::Exec(Box::new(StartExec {
        id: "c".into(),
        exec_id: exec_id.into(),
        process: process(terminal, args),
        streams,
    }))
}

const OUTPUTS: StreamFds = StreamFds {
    stdin: false,
    stdout: true,
    stderr: true,
};

const ALL: StreamFds = StreamFds {
    stdin: true,
    ..OUTPUTS
};

/// The end of a process that joined: exit code and signal.
fn exit(shim: &mut Shim, wanted: &str) -> (i32, Option<i32>) {
    loop {
        let (sequence, event) = shim.client.event().unwrap();
        shim.client.ack(sequence).unwrap();
        if let Event::ExecExited {
            container,
            exec_id,
            exit_code,
            signal,
            at_ns,
        } = event
            && exec_id == wanted
        {
            assert_eq!(container, "c");
            assert!(at_ns > 0);
            return (exit_code, signal);
        }
    }
}

fn text(mut pipe: std::io::PipeReader) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_process_gets_the_callers_streams_and_its_end_is_reported() {
    with_each_runtime("exec", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        let (input, mut feed) = std::io::pipe().unwrap();
        let (out, output) = std::io::pipe().unwrap();
        let (err, error) = std::io::pipe().unwrap();
        let call = start(
            "x",
            false,
            &["/bin/sh", "-c", "cat; echo err >&2; exit 5"],
            ALL,
        );
        let fds = [input.as_fd(), output.as_fd(), error.as_fd()];
        let (answer, _) = shim.client.call(call, &fds).unwrap();
        assert!(matches!(answer, ShimReply::Exec { pid: 2.. }));
        drop((input, output, error));
        feed.write_all(b"fed").unwrap();
        drop(feed);
        assert_eq!(exit(shim, "x"), (5, None));
        assert_eq!(text(out), "fed");
        assert_eq!(text(err), "err\n");
        assert!(shim.container("c").unwrap().execs.is_empty());
    });
}

#[test]
fn short_execs_are_reported_too() {
    with_each_runtime("exec-short", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        for number in 0..10 {
            let id = number.to_string();
            let call = start(&id, false, &["/bin/true"], StreamFds::default());
            shim.call(call).unwrap();
            assert_eq!(exit(shim, &id), (0, None));
        }
    });
}

#[test]
fn a_process_can_be_killed_without_its_container() {
    with_each_runtime("exec-kill", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        let call = start("x", false, &["/bin/sleep", "1000"], StreamFds::default());
        shim.call(call).unwrap();
        assert_eq!(shim.container("c").unwrap().execs.len(), 1);
        shim.signal("c", libc::SIGKILL, SignalTarget::Exec("x".into()));
        assert_eq!(exit(shim, "x"), (137, Some(9)));
        let gone = shim.refused(Call::Signal {
            id: "c".into(),
            signal: 9,
            target: SignalTarget::Exec("x".into()),
        });
        assert_failure(&gone, FailureKind::NotFound, "x");
        assert!(shim.container("c").unwrap().exit.is_none());
    });
}

#[test]
fn a_terminal_is_handed_to_the_caller() {
    with_each_runtime("exec-tty", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        let script = "tty=$(stty size >/dev/null && echo yes); echo terminal $tty; read line; echo got $line";
        let call = start("x", true, &["/bin/sh", "-c", script], StreamFds::default());
        let (_, mut fds) = shim.client.call(call, &[]).unwrap();
        let mut terminal = std::fs::File::from(fds.pop().unwrap());
        terminal.write_all(b"hello\n").unwrap();
        let mut seen = Vec::new();
        // The end of a terminal is an error; what came before it is kept.
        let _ = terminal.read_to_end(&mut seen);
        let seen = String::from_utf8(seen).unwrap();
        assert!(seen.contains("terminal yes"), "{seen:?}");
        assert!(seen.contains("got hello"), "{seen:?}");
        assert_eq!(exit(shim, "x").0, 0);
    });
}

#[test]
fn a_process_that_cannot_be_started_says_why() {
    with_each_runtime("exec-broken", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        let call = start("x", false, &["/bin/nothing"], StreamFds::default());
        let refused = shim.refused(call);
        assert_failure(&refused, FailureKind::Runtime, "/bin/nothing");
        let call = start("y", false, &["/bin/true"], OUTPUTS);
        assert_failure(
            &shim.refused(call),
            FailureKind::Invalid,
            "0 file descriptors",
        );
        shim.create("d", "true", Recipe::default());
        let Call::Exec(mut other) = start("z", false, &["/bin/true"], StreamFds::default()) else {
            unreachable!()
        };
        other.id = "d".into();
        let refused = shim.refused(Call::Exec(other.clone()));
        assert_failure(&refused, FailureKind::WrongState, "created but not running");
        other.id = "nobody".into();
        assert_failure(
            &shim.refused(Call::Exec(other)),
            FailureKind::NotFound,
            "nobody",
        );
    });
}

#[test]
fn all_processes_end_with_the_container_and_many_can_be_in_it() {
    with_each_runtime("exec-many", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        for number in 0..8 {
            let call = start(
                &number.to_string(),
                false,
                &["/bin/sleep", "1000"],
                StreamFds::default(),
            );
            shim.call(call).unwrap();
        }
        assert_eq!(shim.container("c").unwrap().execs.len(), 8);
        shim.signal("c", libc::SIGKILL, SignalTarget::Everyone);
        let mut ended = 0;
        let mut init_ended = false;
        while ended < 8 || !init_ended {
            match shim.client.event().unwrap().1 {
                Event::ExecExited { signal, .. } => {
                    assert_eq!(signal, Some(9));
                    ended += 1;
                }
                Event::Exited { .. } => init_ended = true,
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn descriptors_are_not_kept() {
    with_each_runtime("exec-fds", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        let before = settled_descriptors(shim);
        for number in 0..5 {
            let (mine, theirs) = std::io::pipe().unwrap();
            let theirs = OwnedFd::from(theirs);
            let id = number.to_string();
            let call = start(&id, false, &["/bin/echo", "x"], OUTPUTS);
            let fds = [theirs.as_fd(), theirs.as_fd()];
            shim.client.call(call, &fds).unwrap();
            drop(theirs);
            assert_eq!(text(mine), "x\n");
            exit(shim, &id);
            let broken = start("b", false, &["/bin/nothing"], StreamFds::default());
            failure(shim.call(broken));
        }
        wait_until("as many descriptors as before", || {
            open_files(shim).len() == before
        });
    });
}

#[test]
fn the_exit_of_a_process_is_reported_when_its_container_is_deleted() {
    with_each_runtime("exec-deleted", |shim| {
        let recipe = Recipe {
            host_pids: true,
            ..Recipe::default()
        };
        shim.run("c", "sleep 1000", recipe);
        let call = start("x", false, &["/bin/sleep", "1000"], StreamFds::default());
        shim.call(call).unwrap();
        shim.delete("c");
        assert_eq!(exit(shim, "x"), (137, Some(9)));
    });
}
