//! Attachments to the output of a container, and feeds of its input, several at a time.

use std::{
    io::{PipeReader, PipeWriter, Read as _, Write as _},
    os::fd::{AsFd as _, BorrowedFd},
};

use rubelet_shim::protocol::{Call, Event, FailureKind, StreamFds};
use rustix::pipe::fcntl_setpipe_size;

use crate::fixture::{
    Recipe, Shim, assert_failure, failure, open_files, settled_descriptors, wait_until,
    with_each_runtime,
};

fn attach_call(attach_id: &str, stdout: bool, stderr: bool) -> Call {
    Call::Attach {
        id: "c".into(),
        attach_id: attach_id.into(),
        streams: StreamFds {
            stdin: false,
            stdout,
            stderr,
        },
    }
}

/// Attaches to standard output; the reading end.
fn attach(shim: &mut Shim, attach_id: &str) -> PipeReader {
    let (read, write) = std::io::pipe().unwrap();
    let call = attach_call(attach_id, true, false);
    shim.client.call(call, &[write.as_fd()]).unwrap();
    read
}

fn feed(shim: &mut Shim) -> PipeWriter {
    let (read, write) = std::io::pipe().unwrap();
    let call = Call::FeedStdin { id: "c".into() };
    shim.client.call(call, &[read.as_fd()]).unwrap();
    write
}

fn read_all(mut pipe: PipeReader) -> Vec<u8> {
    let mut all = Vec::new();
    pipe.read_to_end(&mut all).unwrap();
    all
}

fn with_stdin() -> Recipe {
    Recipe {
        stdin: true,
        ..Recipe::default()
    }
}

#[test]
fn a_reader_that_never_reads_is_closed_and_reported() {
    with_each_runtime("attach-slow", |shim| {
        const PIECE: usize = 256 << 10;
        let script = format!("while read line; do head -c {PIECE} /dev/zero; done");
        shim.run("c", &script, with_stdin());
        let mut input = feed(shim);
        let mut fast = attach(shim, "fast");
        fcntl_setpipe_size(&fast, 1 << 20).unwrap();
        let never = attach(shim, "never");
        for _ in 0..20 {
            input.write_all(b"go\n").unwrap();
            let mut piece = vec![1; PIECE];
            fast.read_exact(&mut piece).unwrap();
            assert!(piece.iter().all(|byte| *byte == 0));
        }
        let (_, event) = shim.client.event().unwrap();
        let expected = Event::AttachmentOverrun {
            container: "c".into(),
            attach_id: "never".into(),
        };
        assert_eq!(event, expected);
        // What it got is the beginning of the output, and ends while the container runs.
        let begun = read_all(never);
        assert!(
            begun.len() >= 64 << 10 && begun.len() < PIECE,
            "{}",
            begun.len()
        );
        shim.call(Call::CloseStdin { id: "c".into() }).unwrap();
        assert_eq!(read_all(fast), b"");
        shim.exit("c");
    });
}

#[test]
fn the_last_output_reaches_readers_after_deletion() {
    with_each_runtime("attach-last", |shim| {
        // More than the pipe holds, less than pipe and backlog.
        shim.run("c", "read line; seq 1 16000 >&2", with_stdin());
        let (read, write) = std::io::pipe().unwrap();
        let call = attach_call("a", false, true);
        shim.client.call(call, &[write.as_fd()]).unwrap();
        drop(write);
        feed(shim).write_all(b"go\n").unwrap();
        shim.exit("c");
        shim.delete("c");
        let numbers: Vec<String> = (1..=16000).map(|number| format!("{number}\n")).collect();
        assert_eq!(read_all(read), numbers.concat().as_bytes());
    });
}

#[test]
fn readers_that_go_away_leave_nothing_behind() {
    with_each_runtime("attach-gone", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        let before = settled_descriptors(shim);
        for round in 0..50 {
            let (out, out_end) = std::io::pipe().unwrap();
            let (err, err_end) = std::os::unix::net::UnixStream::pair().unwrap();
            let fds: [BorrowedFd<'_>; 2] = [out_end.as_fd(), err_end.as_fd()];
            let call = attach_call(&round.to_string(), true, true);
            shim.client.call(call, &fds).unwrap();
            drop((out, err));
        }
        wait_until("as many descriptors as before", || {
            open_files(shim).len() == before
        });
    });
}

#[test]
fn failed_attachments_say_why() {
    with_each_runtime("attach-wrong", |shim| {
        shim.run("c", "read line; exec >&- 2>&-; read line", with_stdin());
        let (_read, write) = std::io::pipe().unwrap();
        let none = shim.refused(attach_call("a", true, false));
        assert_failure(&none, FailureKind::Invalid, "one file descriptor for each");
        let file = std::fs::File::open("/bin/sh").unwrap();
        let call = attach_call("a", true, true);
        let fds = [write.as_fd(), file.as_fd()];
        let file = failure(shim.client.call(call, &fds));
        assert_failure(&file, FailureKind::Invalid, "pipes or sockets");
        let mut unknown = attach_call("a", true, false);
        if let Call::Attach { id, .. } = &mut unknown {
            *id = "nobody".into();
        }
        let unknown = failure(shim.client.call(unknown, &[write.as_fd()]));
        assert_failure(&unknown, FailureKind::NotFound, "nobody");

        // A container that closes its output goes on, and its attachments end.
        let early = attach(shim, "early");
        let mut input = feed(shim);
        input.write_all(b"go\n").unwrap();
        assert_eq!(read_all(early), b"");
        assert_eq!(read_all(attach(shim, "late")), b"");
        assert!(shim.container("c").unwrap().exit.is_none());
        input.write_all(b"end\n").unwrap();
        shim.exit("c");
        let over = failure(
            shim.client
                .call(attach_call("a", true, false), &[write.as_fd()]),
        );
        assert_failure(&over, FailureKind::WrongState, "has exited");
    });
}

#[test]
fn all_output_of_a_terminal_is_its_standard_output() {
    with_each_runtime("attach-tty", |shim| {
        let recipe = Recipe {
            tty: true,
            ..with_stdin()
        };
        shim.run("c", "read line; stty size; echo err >&2", recipe);
        let (out, out_end) = std::io::pipe().unwrap();
        let (err, err_end) = std::io::pipe().unwrap();
        let fds = [out_end.as_fd(), err_end.as_fd()];
        shim.client
            .call(attach_call("a", true, true), &fds)
            .unwrap();
        drop((out_end, err_end));
        assert_eq!(read_all(err), b"");
        shim.call(Call::Resize {
            id: "c".into(),
            width: 101,
            height: 23,
        })
        .unwrap();
        feed(shim).write_all(b"go\n").unwrap();
        let seen = String::from_utf8(read_all(out)).unwrap();
        assert!(seen.contains("23 101\r\nerr\r\n"), "{seen:?}");
        shim.exit("c");
    });
}

#[test]
fn several_clients_feed_one_input() {
    with_each_runtime("feed-many", |shim| {
        shim.run("c", "cat; echo end", with_stdin());
        let mut feeds: Vec<PipeWriter> = (0..3).map(|_| feed(shim)).collect();
        for turn in 0..2 {
            for (number, input) in feeds.iter_mut().enumerate() {
                let text = format!("{number} {turn}");
                writeln!(input, "{text}").unwrap();
                shim.wait_for_line("c", &text);
            }
        }
        // The end of one is not the end of the input.
        drop(feeds.remove(0));
        writeln!(feeds[1], "still").unwrap();
        shim.wait_for_line("c", "still");
        shim.call(Call::CloseStdin { id: "c".into() }).unwrap();
        shim.exit("c");
        assert_eq!(shim.lines("c").last().unwrap(), "end");
    });
}

#[test]
fn a_container_that_does_not_read_keeps_its_shim_idle_and_loses_nothing() {
    with_each_runtime("feed-blocked", |shim| {
        let script = "read line < /tmp/go; head -c 614400 | wc -c";
        shim.create("c", script, with_stdin());
        let go = shim.bundle("c").join("rootfs/tmp/go");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &go, fifo, 0o600.into(), 0).unwrap();
        shim.call(Call::Start { id: "c".into() }).unwrap();
        let pieces: Vec<_> = (0..3)
            .map(|_| {
                let mut input = feed(shim);
                std::thread::spawn(move || input.write_all(&[b'x'; 200 << 10]).unwrap())
            })
            .collect();
        // It answers while nobody reads.
        shim.state();
        std::fs::write(go, "go\n").unwrap();
        for piece in pieces {
            piece.join().unwrap();
        }
        shim.exit("c");
        assert_eq!(shim.lines("c"), ["614400"]);
    });
}

#[test]
fn stdin_once_ends_with_the_first_feed_that_ends() {
    with_each_runtime("feed-once", |shim| {
        let recipe = Recipe {
            stdin_once: true,
            ..with_stdin()
        };
        shim.run("c", "cat; echo end", recipe);
        let mut first = feed(shim);
        let mut other = feed(shim);
        writeln!(other, "other").unwrap();
        shim.wait_for_line("c", "other");
        writeln!(first, "first").unwrap();
        drop(first);
        shim.exit("c");
        assert_eq!(shim.lines("c"), ["other", "first", "end"]);
        // Nobody reads it any more.
        wait_until("the end of the other feed", || {
            (&other).write_all(b"x").is_err()
        });
    });
}
