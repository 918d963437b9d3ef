//! Tests of `render`.

use super::{super::pieces::Pieces, *};

const T0: &str = "2024-01-01T00:00:00Z";
const T1: &str = "2024-01-01T00:00:01.5Z";

fn render(show: Show, log: &str) -> String {
    let mut render = Render::new(show);
    let mut pieces = Pieces::starting_at(0);
    pieces.feed(log.as_bytes(), |piece| render.piece(piece));
    pieces.finish(|piece| render.piece(piece));
    render.finish();
    String::from_utf8(render.take()).expect("text")
}

fn plain(log: &str) -> String {
    render(Show::default(), log)
}

#[test]
fn parts_of_a_line_are_joined_also_between_lines_of_the_other_stream() {
    let log = format!("{T0} stdout P a\n{T0} stderr P x\n{T1} stdout F b\n{T1} stderr F y\n");
    assert_eq!(plain(&log), "ab\nxy\n");
    let stamped = render(
        Show {
            timestamps: true,
            ..Show::default()
        },
        &log,
    );
    assert_eq!(
        stamped,
        "2024-01-01T00:00:00.000000000Z ab\n2024-01-01T00:00:00.000000000Z xy\n"
    );
}

#[test]
fn a_line_without_end_is_shown_at_the_end_of_the_log() {
    assert_eq!(plain(&format!("{T0} stdout P half")), "half");
    assert_eq!(plain(&format!("{T0} stdout F no newline")), "no newline\n");
    assert_eq!(
        plain(&format!("{T0} stdout P a\n{T0} stderr P b\n")),
        "a\nb"
    );
}

#[test]
fn empty_lines_and_blanks_are_kept() {
    assert_eq!(
        plain(&format!(
            "{T0} stdout F \n{T0} stdout F   x \n{T0} stdout F\n"
        )),
        "\n  x \n\n"
    );
}

#[test]
fn lines_that_are_not_of_the_format_are_passed_through() {
    let log = format!("garbage\n{T0} stdout F a\n{{\"log\":1}}\n\n{T0} stdout F b\n");
    assert_eq!(plain(&log), "garbage\na\n{\"log\":1}\n\nb\n");
}

#[test]
fn since_leaves_out_older_lines_and_what_belongs_to_them() {
    let since = Some("2024-01-01T00:00:01Z".parse().expect("a time"));
    let log = format!(
        "{T0} stdout F old\ngarbage\n{T0} stdout P be\n{T1} stdout F gun\n{T1} stdout F new\nmore\n"
    );
    assert_eq!(
        render(
            Show {
                since,
                ..Show::default()
            },
            &log
        ),
        "new\nmore\n"
    );
}

#[test]
fn one_stream_is_shown_alone() {
    let log = format!("{T0} stdout F out\n{T0} stderr P er\n{T0} stderr F r\n");
    for (stream, shown) in [(StdStream::Stdout, "out\n"), (StdStream::Stderr, "err\n")] {
        assert_eq!(
            render(
                Show {
                    stream: Some(stream),
                    ..Show::default()
                },
                &log
            ),
            shown
        );
    }
}

#[test]
fn the_limit_counts_what_is_shown_and_cuts_within_a_line() {
    let log = format!("{T0} stdout F 12345\n{T0} stdout F 67890\n");
    for (limit, shown) in [
        (0, ""),
        (3, "123"),
        (6, "12345\n"),
        (8, "12345\n67"),
        (99, "12345\n67890\n"),
    ] {
        assert_eq!(
            render(
                Show {
                    limit: Some(limit),
                    ..Show::default()
                },
                &log
            ),
            shown
        );
    }
}

#[test]
fn a_prompt_is_shown_before_its_line_ends_and_other_lines_break_it_off() {
    let mut render = Render::new(Show {
        timestamps: true,
        ..Show::default()
    });
    let mut pieces = Pieces::starting_at(0);
    let mut feed = |render: &mut Render, log: &str| {
        pieces.feed(log.as_bytes(), |piece| render.piece(piece));
        render.pause();
        String::from_utf8(render.take()).expect("text")
    };
    let (t0, t1) = (
        "2024-01-01T00:00:00.000000000Z",
        "2024-01-01T00:00:01.500000000Z",
    );
    assert_eq!(feed(&mut render, &format!("{T0} stdout P name")), "");
    assert_eq!(feed(&mut render, "? \n"), format!("{t0} name? "));
    assert_eq!(feed(&mut render, &format!("{T1} stdout P Joe \n")), "Joe ");
    assert_eq!(
        feed(&mut render, &format!("{T1} stderr F warn\n")),
        format!("\n{t1} warn\n")
    );
    assert_eq!(
        feed(&mut render, &format!("{T1} stdout F Doe\n")),
        format!("{t1} Doe\n")
    );
}

#[test]
fn a_line_longer_than_the_bound_is_shown_as_it_comes() {
    let part = "x".repeat(MAX_HELD / 2);
    let log: String = (0..5).map(|_| format!("{T0} stdout P {part}\n")).collect();
    let shown = plain(&format!(
        "{log}{T0} stdout F end\n{T0} stdout F {part}{part}{part}\n"
    ));
    assert_eq!(
        shown,
        format!("{}end\n{}\n", part.repeat(5), part.repeat(3))
    );
}
