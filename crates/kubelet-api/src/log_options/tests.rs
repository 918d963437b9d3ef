//! Tests of `log_options`.

use super::*;

#[test]
fn options_are_read_as_the_kubelet_reads_them() {
    let none = LogOptions::default;
    for (query, expected) in [
        ("", none()),
        ("unknown=1", none()),
        (
            "follow&previous=true&timestamps=yes",
            LogOptions {
                follow: true,
                previous: true,
                timestamps: true,
                ..none()
            },
        ),
        ("follow=0&previous=FALSE&timestamps=false", none()),
        (
            "follow=0&follow=1&tailLines=7",
            LogOptions {
                tail_lines: Some(7),
                ..none()
            },
        ),
        (
            "tailLines=0&limitBytes=1&sinceSeconds=1",
            LogOptions {
                tail_lines: Some(0),
                limit_bytes: Some(1),
                since: Some(LogSince::Seconds(1)),
                ..none()
            },
        ),
        ("tail=all&tailLines=3", none()),
        (
            "tail=5&tailLines=3",
            LogOptions {
                tail_lines: Some(5),
                ..none()
            },
        ),
        ("sinceTime=", none()),
        (
            "sinceTime=2026-01-02T03:04:05%2B01:00",
            LogOptions {
                since: Some(LogSince::Time("2026-01-02T02:04:05Z".parse().unwrap())),
                ..none()
            },
        ),
        (
            "stream=Stderr",
            LogOptions {
                output: Some(LogOutput::Stderr),
                ..none()
            },
        ),
        (
            "stream=All&tailLines=0",
            LogOptions {
                tail_lines: Some(0),
                ..none()
            },
        ),
    ] {
        assert_eq!(read(Some(query)), Ok(expected), "{query}");
    }
    assert_eq!(read(None), Ok(none()));
}

#[test]
fn bad_queries_are_answered_in_the_kubelets_words() {
    for query in [
        "tailLines=x",
        "tailLines=",
        "tail=1.5",
        "limitBytes=99999999999999999999",
        "sinceSeconds=1h",
        "sinceTime=yesterday",
        "follow=%zz",
    ] {
        assert_eq!(read(Some(query)), Err(UNREADABLE), "{query}");
    }
    for query in [
        "tailLines=-1",
        "limitBytes=0",
        "limitBytes=-1",
        "sinceSeconds=0",
        "sinceSeconds=-5",
        "sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z",
        "stream=both",
        "stream=",
        "stream=Stdout&tailLines=1",
    ] {
        assert_eq!(read(Some(query)), Err(INVALID), "{query}");
    }
}
