//! Watches of a server in memory, with paused time.

mod connections;
mod lists;
mod unreadable;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, timeout},
};

use super::*;
use crate::{
    Client,
    test_server::{ReceivedRequest, TestAnswer, TestServer},
};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct TestObject {
    metadata: ThingMeta,
    data: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct ThingMeta {
    name: String,
}

fn thing(name: &str, version: u32, data: u32) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version.to_string(), "managedFields": [{}]}, "data": data})
}

fn event(kind: &str, object: Value) -> Value {
    let mut event = json!({"type": kind});
    event["object"] = object;
    event
}

fn bookmark(version: u32, end: bool) -> Value {
    let mut object = json!({"metadata": {"resourceVersion": version.to_string()}});
    if end {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    event("BOOKMARK", object)
}

fn refusal(code: u16, reason: &str) -> TestAnswer {
    TestAnswer::Json(
        code,
        json!({"kind": "Status", "code": code, "reason": reason, "message": reason}),
    )
}

/// A server that answers requests in this order, and hangs after that.
fn scripted(answers: Vec<TestAnswer>) -> TestServer {
    let answers = Mutex::new(VecDeque::from(answers));
    TestServer::new(move |_| answers.lock().pop_front().unwrap_or(TestAnswer::Hang))
}

fn watcher(client: &Client) -> Watcher<TestObject> {
    client.watch(WatchTarget {
        path: "/api/v1/things".to_owned(),
        ..WatchTarget::default()
    })
}

/// Changes in short: `=` listed, `+` applied, `-` deleted.
fn short(change: &Change<TestObject>) -> String {
    let name = |thing: &TestObject| format!("{}{}", thing.metadata.name, thing.data);
    match change {
        Change::Listed(things) => {
            let names: Vec<String> = things.iter().map(name).collect();
            format!("={}", names.join(","))
        }
        Change::Applied(thing) => format!("+{}", name(thing)),
        Change::Deleted(thing) => format!("-{}", name(thing)),
    }
}

async fn next(watcher: &mut Watcher<TestObject>) -> String {
    match timeout(Duration::from_secs(3600), watcher.next()).await {
        Ok(change) => short(&change),
        Err(_) => "nothing".to_owned(),
    }
}

fn write(to: &UnboundedSender<String>, line: &Value) {
    to.send(format!("{line}\n")).unwrap();
}

fn is_streaming_list(asked: &ReceivedRequest) -> bool {
    asked.has("sendInitialEvents=true") && asked.has("resourceVersionMatch=NotOlderThan")
}

#[tokio::test(start_paused = true)]
async fn existing_objects_come_first_and_then_changes() {
    for http2 in [false, true] {
        let (answer, to) = TestAnswer::lines(&[
            event("ADDED", thing("b", 2, 1)),
            event("ADDED", thing("a", 1, 1)),
            event("ADDED", thing("c", 3, 1)),
            event("DELETED", thing("c", 4, 1)),
            event("MODIFIED", thing("b", 5, 2)),
            bookmark(5, true),
        ]);
        let server = scripted(vec![answer]);
        let mut watcher = watcher(&server.client(http2));
        assert_eq!(next(&mut watcher).await, "=a1,b2");
        write(&to, &event("MODIFIED", thing("a", 6, 3)));
        write(&to, &event("DELETED", thing("b", 7, 2)));
        write(&to, &event("ADDED", thing("d", 8, 4)));
        assert_eq!(next(&mut watcher).await, "+a3");
        assert_eq!(next(&mut watcher).await, "-b2");
        assert_eq!(next(&mut watcher).await, "+d4");
        assert_eq!(server.asked().len(), 1, "one request does it all");
        assert_eq!(*watcher.problem().borrow(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_continues_from_its_last_version() {
    let (first, to) = TestAnswer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(5, true)]);
    let (second, to_second) = TestAnswer::lines(&[]);
    let server = scripted(vec![first, second]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=a1");
    write(&to, &event("MODIFIED", thing("a", 6, 2)));
    assert_eq!(next(&mut watcher).await, "+a2");
    let start = Instant::now();
    let waiting = tokio::spawn(async move { next(&mut watcher).await });
    tokio::time::sleep(Duration::from_secs(200)).await;
    write(&to, &bookmark(9, false));
    tokio::time::sleep(Duration::from_secs(100)).await;
    drop(to);
    write(&to_second, &event("ADDED", thing("b", 10, 1)));
    assert_eq!(waiting.await.unwrap(), "+b1");
    assert_eq!(start.elapsed().as_secs(), 300, "at once");
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].has("resourceVersion=9") && asked[1].has("watch=true"));
    assert!(asked[1].has("allowWatchBookmarks=true") && !is_streaming_list(&asked[1]));
}

#[tokio::test(start_paused = true)]
async fn watches_last_as_long_as_asked_for() {
    let seconds = |asked: &ReceivedRequest| -> u64 {
        let (_, rest) = asked.path.split_once("timeoutSeconds=").unwrap();
        rest.split('&').next().unwrap().parse().unwrap()
    };
    let mut all = Vec::new();
    for least in [None, Some(Duration::from_secs(1800))] {
        let server = TestServer::new(|_| TestAnswer::lines(&[bookmark(1, true)]).0);
        let client = server.client(true);
        for _ in 0..10 {
            let mut watcher = watcher(&client);
            if let Some(least) = least {
                watcher = watcher.min_timeout(least);
            }
            watcher.next().await;
        }
        let from = least.map_or(300, |least| least.as_secs());
        let asked: Vec<u64> = server.asked().iter().map(seconds).collect();
        assert!(
            asked
                .iter()
                .all(|seconds| (from..=2 * from).contains(seconds)),
            "{asked:?}"
        );
        all.extend(asked);
    }
    all.dedup();
    assert!(all.len() > 10, "they vary: {all:?}");
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_away_the_waits_grow_and_the_reason_is_reported() {
    let server = TestServer::new(|_| {
        TestAnswer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(1, true)]).0
    });
    server.set_down(true);
    let client = server.client(true);
    let mut watcher = watcher(&client);
    let mut problem = watcher.problem();
    let waiting = tokio::spawn(async move {
        let change = next(&mut watcher).await;
        (change, watcher)
    });
    problem.changed().await.unwrap();
    let text = problem.borrow_and_update().clone().unwrap();
    assert!(
        text.starts_with("/api/v1/things: the API server cannot be reached"),
        "{text}"
    );
    let mut gaps = Vec::new();
    let mut last = Instant::now();
    for _ in 0..8 {
        problem.changed().await.unwrap();
        problem.borrow_and_update();
        gaps.push(last.elapsed().as_secs_f32());
        last = Instant::now();
    }
    assert!((0.8..=1.6).contains(&gaps[0]), "{gaps:?}");
    assert!(
        gaps[6..].iter().all(|gap| (30.0..=60.1).contains(gap)),
        "{gaps:?}"
    );
    server.set_down(false);
    let (change, watcher) = waiting.await.unwrap();
    assert_eq!(change, "=a1");
    assert_eq!(*watcher.problem().borrow(), None);
}

#[tokio::test(start_paused = true)]
async fn the_server_says_how_long_to_wait() {
    let long = TestAnswer::With(429, vec![("retry-after", "100".to_owned())], String::new());
    let (listed, _to) = TestAnswer::lines(&[bookmark(1, true)]);
    let server = scripted(vec![long, listed]);
    let mut watcher = watcher(&server.client(true));
    let start = Instant::now();
    assert_eq!(next(&mut watcher).await, "=");
    assert!((100..=200).contains(&start.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_server_loses_nothing() {
    let (first, _to) = TestAnswer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(5, true)]);
    let (second, _to) = TestAnswer::lines(&[event("DELETED", thing("a", 6, 1))]);
    let server = scripted(vec![first, second]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=a1");
    let waiting = tokio::spawn(async move { next(&mut watcher).await });
    tokio::time::sleep(Duration::from_secs(20)).await;
    server.set_down(true);
    tokio::time::sleep(Duration::from_secs(20)).await;
    server.set_down(false);
    assert_eq!(waiting.await.unwrap(), "-a1");
    assert!(server.asked()[1].has("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_loses_nothing() {
    let (answer, to) = TestAnswer::lines(&[]);
    let server = scripted(vec![answer]);
    let mut watcher = watcher(&server.client(true));
    let mut found = Vec::new();
    let lines = [
        event("ADDED", thing("a", 1, 1)),
        bookmark(1, true),
        event("ADDED", thing("b", 2, 1)),
        event("ADDED", thing("c", 3, 1)),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    for piece in text.as_bytes().chunks(7) {
        to.send(String::from_utf8(piece.to_vec()).unwrap()).unwrap();
        // Each wait is so short that most are given up.
        while let Ok(change) = timeout(Duration::from_millis(1), watcher.next()).await {
            found.push(short(&change));
        }
    }
    assert_eq!(found, ["=a1", "+b1", "+c1"]);
    assert_eq!(server.asked().len(), 1);
}
