//! Logs, as the kubelet and collectors of logs see them.

use std::fs;

use rubelet_shim::protocol::{Call, FailureKind, RuntimeChoice};

use crate::fixture::{
    Recipe, Shim, assert_failure, entry, runtimes, wait_until, with_each_runtime,
};

/// A shim with a runtime that is quick; the log doesn't depend on it.
fn shim(name: &str) -> Shim {
    let runtime = runtimes().pop().unwrap_or(RuntimeChoice::Embedded);
    let mut shim = Shim::start(name, runtime);
    shim.make_sandbox();
    shim
}

#[test]
fn long_lines_are_cut_and_the_rest_at_the_end_is_partial() {
    let shim = &mut shim("log-long");
    let recipe = Recipe {
        max_log_line: 8,
        ..Recipe::default()
    };
    shim.run("c", "echo 0123456789; echo 01234567; echo -n rest", recipe);
    shim.exit("c");
    let log: Vec<_> = shim
        .log("c")
        .into_iter()
        .map(|one| (one.1, one.2))
        .collect();
    let expected = [
        (true, "01234567"),
        (false, "89"),
        (false, "01234567"),
        (true, "rest"),
    ];
    assert_eq!(
        log,
        expected.map(|(partial, text)| (partial, text.to_owned()))
    );
}

#[test]
fn the_log_goes_on_in_a_new_file_after_it_was_moved_away() {
    let shim = &mut shim("log-rotate");
    let script = "echo one; while [ ! -e /go ]; do sleep 0.01; done; echo two; sleep 1000";
    shim.run("c", script, Recipe::default());
    shim.wait_for_line("c", "one");
    let log = shim.bundle("c").join("0.log");
    fs::rename(&log, shim.bundle("c").join("0.log.old")).unwrap();
    shim.call(Call::ReopenLog { id: "c".into() }).unwrap();
    fs::write(shim.bundle("c").join("rootfs/go"), "").unwrap();
    shim.wait_for_line("c", "two");
    assert_eq!(shim.lines("c"), ["two"]);
    let old = fs::read_to_string(shim.bundle("c").join("0.log.old")).unwrap();
    assert_eq!(entry(old.trim_end()).2, "one");

    // Where it can't be reopened, it continues in the old file.
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    let refused = shim.refused(Call::ReopenLog { id: "c".into() });
    assert_failure(&refused, FailureKind::Host, "reopen");
}

#[test]
fn a_flood_is_logged_whole_and_delays_no_other_container() {
    with_each_runtime("log-flood", |shim| {
        let count = 200_000;
        shim.run("c", &format!("seq {count}"), Recipe::default());
        // The shim answers meanwhile.
        shim.state();
        assert_eq!(shim.exit("c").exit_code, 0);
        let lines = shim.lines("c");
        assert_eq!(lines.len(), count);
        assert!(
            lines
                .iter()
                .zip(1..)
                .all(|(line, number)| *line == number.to_string())
        );
    });
}

#[test]
fn a_full_disk_neither_blocks_nor_ends_the_container_and_is_counted() {
    let shim = &mut shim("log-full");
    let disk = shim.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let options = rubelet_host::mount::TmpfsOptions {
        size: Some(256 << 10),
        ..Default::default()
    };
    rubelet_host::mount::tmpfs(&disk, options).unwrap();
    let recipe = Recipe {
        log_path: Some(disk.join("0.log")),
        ..Recipe::default()
    };
    let script =
        "seq 100000; echo x > /done; while [ ! -e /go ]; do sleep 0.01; done; echo later; exit 4";
    shim.run("c", script, recipe);
    let done = shim.bundle("c").join("rootfs/done");
    wait_until("all that the container had to say", || done.exists());
    let lost = shim.container("c").unwrap().log;
    assert!(lost.lost_lines > 50_000, "{lost:?}");
    assert!(lost.last_error.unwrap().contains("No space left"));
    assert!(
        shim.state()
            .warnings
            .iter()
            .any(|text| text.contains("0.log"))
    );
    let text = fs::read_to_string(disk.join("0.log")).unwrap();
    assert!(text.ends_with('\n'));
    let written = text.lines().map(entry).count() as u64;

    // The kubelet rotates; then there is room again.
    fs::remove_file(disk.join("0.log")).unwrap();
    shim.call(Call::ReopenLog { id: "c".into() }).unwrap();
    fs::write(shim.bundle("c").join("rootfs/go"), "").unwrap();
    assert_eq!(shim.exit("c").exit_code, 4);
    let text = fs::read_to_string(disk.join("0.log")).unwrap();
    assert_eq!(entry(text.lines().last().unwrap()).2, "later");
    let lost = shim.container("c").unwrap().log.lost_lines;
    // The loss is reported in the log, as the first thing that could be written.
    let (stream, _, note) = entry(text.lines().next().unwrap());
    assert_eq!(stream, "stderr");
    assert!(
        note.starts_with(&format!("rubelet: {lost} entries of this log")),
        "{note}"
    );
    let rest = text.lines().count() as u64 - 2;
    assert_eq!(written + lost + rest, 100_000);
    shim.delete("c");
    rubelet_host::mount::unmount(&disk, true).unwrap();
}

#[test]
fn a_container_that_never_stops_writing_fills_no_disk_and_is_not_held_up() {
    let shim = &mut shim("log-bound");
    let bound = 256 << 10;
    let recipe = Recipe {
        max_log_bytes: bound,
        ..Recipe::default()
    };
    // Some 4 MiB with the heads of the entries.
    shim.run("c", "seq 100000; echo last >&2; exit 4", recipe);
    assert_eq!(shim.exit("c").exit_code, 4);
    let entries = fs::read_dir(shim.bundle("c")).unwrap().flatten();
    let mut files: Vec<_> = entries
        .filter(|file| file.file_name().to_string_lossy().starts_with("0.log"))
        .map(|file| file.path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    files.reverse();
    let sizes = files.iter().map(|file| file.metadata().unwrap().len());
    // A file may end with one read more than half of the bound.
    assert!(
        sizes.clone().sum::<u64>() < bound * 3,
        "{:?}",
        sizes.collect::<Vec<_>>()
    );
    let text: String = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let mut lines: Vec<String> = text.lines().map(|line| entry(line).2).collect();
    lines.retain(|line| line != "last");
    let first = 100_000 - lines.len() + 1;
    assert!(first > 1, "nothing was dropped");
    assert!(
        lines
            .iter()
            .zip(first..)
            .all(|(line, number)| *line == number.to_string())
    );
    let state = shim.container("c").unwrap().log;
    assert_eq!(state.lost_lines, 0, "{state:?}");
    let warnings = shim.state().warnings;
    assert!(
        warnings.iter().any(|text| text.contains("bound")),
        "{warnings:?}"
    );
}

#[test]
fn a_log_that_cannot_be_opened_is_a_failure_before_anything_is_made() {
    let shim = &mut shim("log-nowhere");
    let recipe = Recipe {
        log_path: Some("/nowhere/at/all/0.log".into()),
        ..Recipe::default()
    };
    let what = shim.prepare("c", "true", recipe);
    let refused = shim.refused(Call::Create(Box::new(what)));
    assert_failure(&refused, FailureKind::Host, "/nowhere/at/all/0.log");
    assert_eq!(shim.container("c"), None);
}
