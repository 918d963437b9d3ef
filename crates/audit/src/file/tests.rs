//! Tests of `file`.

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn files_that_are_put_aside_have_the_time_in_their_names() {
    let now = at("2026-03-01T12:00:00.1234Z");
    for (name, expected) in [
        ("audit.log", "audit-2026-03-01T12-00-00.123.log"),
        ("audit", "audit-2026-03-01T12-00-00.123"),
        (".audit", ".audit-2026-03-01T12-00-00.123"),
    ] {
        let backup = backup_name(OsStr::new(name), now);
        assert_eq!(backup, OsStr::new(expected));
        let found = put_aside(OsStr::new(name), &backup);
        assert_eq!(found, Some(at("2026-03-01T12:00:00.123Z")), "{expected}");
    }
    for other in [
        "audit.log",
        "audit-x.log",
        "audit-2026-03-01T12-00-00.123.log.gz",
        "audit-2026-03-01T12-00-00.log",
        "audit-2026-03-01T12-00-00.1-2.log",
        "audit-2026-13-01T12-00-00.123.log",
        "other-2026-03-01T12-00-00.123.log",
    ] {
        assert_eq!(put_aside(OsStr::new("audit.log"), OsStr::new(other)), None);
    }
}

#[test]
fn a_file_that_is_put_aside_later_has_a_later_name() {
    let now = at("2026-03-01T12:00:00.1234Z");
    assert_eq!(later_than(now, None), now);
    assert_eq!(later_than(now, Some(at("2026-03-01T11:00:00Z"))), now);
    for (newest, expected) in [
        ("2026-03-01T12:00:00.123Z", "2026-03-01T12:00:00.124Z"),
        // The clock was set back.
        ("2026-03-02T00:00:00Z", "2026-03-02T00:00:00.001Z"),
    ] {
        assert_eq!(later_than(now, Some(at(newest))), at(expected));
    }
}

#[test]
fn the_newest_are_kept_and_none_for_too_long() {
    let name = OsStr::new("audit.log");
    let names: Vec<OsString> = (1..=9)
        .map(|day| format!("audit-2026-03-0{day}T00-00-00.000.log").into())
        .chain(["precious.log".into(), "audit.log".into()])
        .collect();
    let now = at("2026-03-09T12:00:00Z");
    let expired = |max_backups, days: u64| {
        let rotation = Rotation {
            max_bytes: 1,
            max_backups,
            max_age: Duration::from_secs(days * 86_400),
        };
        expired(name, &names, &rotation, now).len()
    };
    for (max_backups, days, removed) in [(0, 0, 0), (3, 0, 6), (0, 2, 7), (5, 2, 7), (1, 2, 8)] {
        assert_eq!(expired(max_backups, days), removed, "{max_backups} {days}");
    }
}
