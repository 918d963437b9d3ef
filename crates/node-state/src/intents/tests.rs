//! Intents over restarts of the agent, full disks and damaged files.

use std::{fs, task::Poll, time::Duration};

use rubelet_pod_plan::intents::RestartIntent;
use tempfile::TempDir;

use super::*;

fn uid() -> PodUid {
    PodUid::from("u1")
}

fn shorten(seconds: u64) -> impl FnOnce(&mut OperatorIntents) + Send {
    move |intents| intents.grace = Some(Duration::from_secs(seconds))
}

fn board(directory: &TempDir) -> IntentBoard {
    IntentBoard::new(directory.path().to_owned())
}

fn names(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let first = board(&directory);
    let mut followed = first.watch(&uid()).await;
    assert_eq!(**followed.borrow_and_update(), OperatorIntents::default());
    let restart = RestartIntent {
        instance: Some("c1".into()),
        at: "2026-03-01T12:00:00Z".parse().unwrap(),
    };
    let asked = restart.clone();
    let before = first
        .update(&uid(), move |intents| {
            intents.restarts.insert("app".into(), asked).is_some()
        })
        .await
        .unwrap();
    assert!(!before);
    assert!(followed.has_changed().unwrap());
    assert_eq!(followed.borrow().restarts["app"], restart);

    let second = board(&directory);
    assert_eq!(second.current(&uid()), None);
    let kept = second.watch(&uid()).await.borrow().clone();
    assert_eq!(kept.restarts["app"], restart);
    assert_eq!(second.current(&uid()), Some(kept));
    assert!(
        second
            .watch(&PodUid::from("u2"))
            .await
            .borrow()
            .restarts
            .is_empty()
    );
}

#[tokio::test]
async fn an_update_without_changes_wakes_no_task_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let board = board(&directory);
    let mut followed = board.watch(&uid()).await;
    followed.mark_unchanged();
    let seen = board
        .update(&uid(), |intents| intents.grace)
        .await
        .expect("nothing is written");
    assert_eq!(seen, None);
    assert!(!followed.has_changed().unwrap());
    assert_eq!((names(&directory).len(), board.version_of(&uid())), (0, 0));
}

#[tokio::test]
async fn a_pod_that_is_gone_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let board = board(&directory);
    board.update(&uid(), shorten(3)).await.unwrap();
    assert_eq!(names(&directory), ["u1.json"]);
    board.remove(&uid()).await;
    assert_eq!(names(&directory), [""; 0]);
    assert_eq!(board.current(&uid()), None);
    let again = board.watch(&uid()).await;
    assert_eq!(**again.borrow(), OperatorIntents::default());
}

#[tokio::test]
async fn removing_a_pod_forgets_also_what_only_the_disk_knew() {
    let directory = tempfile::tempdir().unwrap();
    board(&directory).update(&uid(), shorten(3)).await.unwrap();
    board(&directory).remove(&uid()).await;
    assert_eq!(names(&directory), [""; 0]);
}

#[tokio::test]
async fn a_damaged_record_is_put_aside_and_counts_as_empty() {
    for damage in [
        "",
        "{",
        "no record",
        r#"{"kind":"pod","version":1,"value":{}}"#,
    ] {
        let directory = tempfile::tempdir().unwrap();
        board(&directory).update(&uid(), shorten(3)).await.unwrap();
        fs::write(directory.path().join("u1.json"), damage).unwrap();
        let board = board(&directory);
        assert_eq!(
            **board.watch(&uid()).await.borrow(),
            OperatorIntents::default(),
            "{damage:?}"
        );
        assert_eq!(names(&directory), ["u1.json.corrupt-1"], "{damage:?}");
        board.update(&uid(), shorten(5)).await.unwrap();
        assert_eq!(
            names(&directory),
            ["u1.json", "u1.json.corrupt-1"],
            "{damage:?}"
        );
    }
}

#[tokio::test]
async fn a_disk_that_refuses_is_an_error_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let board = board(&directory);
    let mut followed = board.watch(&uid()).await;
    followed.mark_unchanged();
    fs::remove_dir(directory.path()).unwrap();
    let error = board.update(&uid(), shorten(3)).await.unwrap_err();
    assert!(matches!(error, IntentError::Save { .. }), "{error}");
    assert!(!followed.has_changed().unwrap());
    assert_eq!(board.current(&uid()).unwrap().grace, None);
    fs::create_dir(directory.path()).unwrap();
    board.update(&uid(), shorten(3)).await.unwrap();
    assert!(followed.has_changed().unwrap());
}

#[tokio::test]
async fn a_request_that_frees_space_needs_none() {
    let directory = tempfile::tempdir().unwrap();
    let board = board(&directory);
    let mut followed = board.watch(&uid()).await;
    followed.mark_unchanged();
    fs::remove_dir(directory.path()).unwrap();
    board.update_without_space(&uid(), shorten(3)).await;
    assert!(followed.has_changed().unwrap());
    assert_eq!(followed.borrow().grace, Some(Duration::from_secs(3)));
    // It is stored with the next change, once there is space.
    fs::create_dir(directory.path()).unwrap();
    board.update_without_space(&uid(), shorten(2)).await;
    assert_eq!(names(&directory), ["u1.json"]);
}

#[tokio::test]
async fn an_update_whose_caller_goes_away_is_made_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let board = board(&directory);
    for seconds in 1..20 {
        // The caller is dropped at one of its waits, whichever that is.
        let uid = uid();
        let mut update = Box::pin(board.update(&uid, shorten(seconds)));
        for _ in 0..seconds % 4 {
            let polled = std::future::poll_fn(|cx| Poll::Ready(update.as_mut().poll(cx))).await;
            if polled.is_ready() {
                // The disk was quicker.
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(update);
        // Waits for its turn, and so for the end of whatever was begun.
        let told = board.update(&uid, |intents| intents.grace).await.unwrap();
        let on_disk = read(&path(directory.path(), &uid)).grace;
        assert_eq!(told, on_disk, "{seconds}");
    }
}

#[tokio::test]
async fn versions_tell_which_pods_have_changed() {
    let directory = tempfile::tempdir().unwrap();
    let board = board(&directory);
    let mut versions = board.versions();
    board.update(&uid(), shorten(3)).await.unwrap();
    assert!(versions.has_changed().unwrap());
    versions.mark_unchanged();
    let other = PodUid::from("u2");
    board.update(&other, shorten(3)).await.unwrap();
    assert!(versions.has_changed().unwrap());
    assert_eq!((board.version_of(&uid()), board.version_of(&other)), (1, 2));
}
