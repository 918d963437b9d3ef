//! Standard input and terminals, with each runtime.

use std::{io::Write as _, os::fd::AsFd as _};

use rubelet_shim::protocol::{Call, FailureKind};

use crate::fixture::{Recipe, assert_failure, failure, with_each_runtime};

fn feed() -> Call {
    Call::FeedStdin { id: "c".into() }
}

#[test]
fn without_stdin_a_container_reads_nothing() {
    with_each_runtime("in-none", |shim| {
        shim.run("c", "cat; echo end", Recipe::default());
        shim.exit("c");
        assert_eq!(shim.lines("c"), ["end"]);
    });
}

#[test]
fn stdin_stays_open_from_feed_to_feed_until_it_is_closed() {
    with_each_runtime("in-open", |shim| {
        let recipe = Recipe {
            stdin: true,
            ..Recipe::default()
        };
        shim.run("c", "cat; echo end", recipe);
        for text in ["one", "two"] {
            let (read, mut write) = std::io::pipe().unwrap();
            shim.client.call(feed(), &[read.as_fd()]).unwrap();
            drop(read);
            writeln!(write, "{text}").unwrap();
            shim.wait_for_line("c", text);
            drop(write);
            // The end of the feed came before this call, and is noticed no later.
            shim.state();
        }
        shim.call(Call::CloseStdin { id: "c".into() }).unwrap();
        shim.exit("c");
        assert_eq!(shim.lines("c"), ["one", "two", "end"]);
    });
}

#[test]
fn stdin_once_ends_with_its_first_feed_which_may_be_long() {
    with_each_runtime("in-once", |shim| {
        let recipe = Recipe {
            stdin: true,
            stdin_once: true,
            ..Recipe::default()
        };
        shim.run("c", "sleep 0.1; cat | wc -c; echo end", recipe);
        let (read, mut write) = std::io::pipe().unwrap();
        shim.client.call(feed(), &[read.as_fd()]).unwrap();
        drop(read);
        // More than all pipes on the way hold.
        for _ in 0..64 {
            write.write_all(&[b'x'; 8 << 10]).unwrap();
        }
        drop(write);
        shim.exit("c");
        assert_eq!(shim.lines("c"), [(512 << 10).to_string().as_str(), "end"]);
        let over = failure(shim.client.call(feed(), &[std::io::stdin().as_fd()]));
        assert_failure(&over, FailureKind::WrongState, "closed");
    });
}

#[test]
fn a_terminal_has_a_size_and_one_output() {
    with_each_runtime("tty", |shim| {
        let recipe = Recipe {
            tty: true,
            stdin: true,
            ..Recipe::default()
        };
        shim.create(
            "c",
            "read line; stty size; echo err >&2; echo got $line",
            recipe,
        );
        shim.call(Call::Resize {
            id: "c".into(),
            width: 91,
            height: 17,
        })
        .unwrap();
        shim.call(Call::Start { id: "c".into() }).unwrap();
        let (read, mut write) = std::io::pipe().unwrap();
        shim.client.call(feed(), &[read.as_fd()]).unwrap();
        writeln!(write, "hello").unwrap();
        assert_eq!(shim.exit("c").exit_code, 0);
        let log = shim.log("c");
        assert!(
            log.iter().all(|(stream, _, _)| stream == "stdout"),
            "{log:?}"
        );
        let lines: Vec<&str> = log.iter().map(|one| one.2.trim_end()).collect();
        for line in ["17 91", "err", "got hello"] {
            assert!(lines.contains(&line), "{lines:?}");
        }
    });
}
