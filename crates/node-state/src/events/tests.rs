//! Tests of `events`.

use std::collections::BTreeSet;

use tokio::time::advance;

use super::*;

fn about(name: &str) -> Subject {
    Subject::Manifest(name.into())
}

/// Events in the order of their last change, as `SUBJECT REASON xCOUNT`.
fn kept(recorder: &Recorder) -> Vec<String> {
    let mut rows = recorder.board().list();
    rows.sort_by_key(|(_, version, _)| *version);
    let short = |event: &Event| match &event.subject {
        Subject::Manifest(name) => format!("{name} {} x{}", event.reason, event.count),
        other => format!("{other:?}"),
    };
    rows.iter().map(|(_, _, event)| short(event)).collect()
}

#[tokio::test(start_paused = true)]
async fn equal_events_are_counted_as_one_as_long_as_they_keep_coming() {
    let recorder = Recorder::new(Clock::following_tokio(Timestamp::UNIX_EPOCH));
    let record = |name, reason, message: &str| {
        recorder.record(about(name), EventType::Warning, reason, message);
    };
    record("a", "Failed", "no");
    record("b", "Failed", "no");
    record("a", "Broken", "no");
    record("a", "Failed", "another message");
    for _ in 0..5 {
        advance(Duration::from_secs(599)).await;
        record("a", "Failed", "no");
    }
    assert_eq!(
        kept(&recorder),
        ["b Failed x1", "a Broken x1", "a Failed x1", "a Failed x6"]
    );
    let rows = recorder.board().list();
    let (_, _, event) = rows.iter().find(|(_, _, event)| event.count == 6).unwrap();
    assert_eq!(event.first, Timestamp::UNIX_EPOCH);
    assert_eq!(event.last.as_second(), 5 * 599);

    advance(AGGREGATE).await;
    record("a", "Failed", "no");
    assert_eq!(kept(&recorder).last().unwrap(), "a Failed x1");
    assert_eq!(kept(&recorder).len(), 5);
}

#[test]
fn the_log_names_what_an_event_is_about() {
    let pod = |field_path: &str| Subject::Pod {
        name: PodName::new("default", "web-n1"),
        uid: None,
        field_path: field_path.into(),
    };
    for (subject, text) in [
        (pod(""), "pod default/web-n1"),
        (
            pod("spec.containers{web}"),
            "pod default/web-n1 spec.containers{web}",
        ),
        (about("/m/a.yaml"), "manifest /m/a.yaml"),
    ] {
        assert_eq!(subject.to_string(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_thousand_are_kept_and_all_have_names_of_their_own() {
    let recorder = Recorder::new(Clock::following_tokio(Timestamp::UNIX_EPOCH));
    for number in 0..KEEP + 200 {
        let name = number.to_string();
        recorder.record(about(&name), EventType::Normal, "Seen", "it is there");
    }
    let rows = kept(&recorder);
    assert_eq!(rows.len(), KEEP);
    assert_eq!(rows[0], "200 Seen x1");
    let names: BTreeSet<_> = recorder
        .board()
        .list()
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
    assert_eq!(names.len(), KEEP);
}
