//! Watches of a server in memory, with paused time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, timeout},
};

use super::*;
use crate::{
    Client,
    test_server::{Answer, Asked, TestServer},
};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Thing {
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

fn refusal(code: u16, reason: &str) -> Answer {
    Answer::Json(
        code,
        json!({"kind": "Status", "code": code, "reason": reason, "message": reason}),
    )
}

/// A server that answers requests in this order, and hangs after that.
fn scripted(answers: Vec<Answer>) -> TestServer {
    let answers = Mutex::new(VecDeque::from(answers));
    TestServer::new(move |_| answers.lock().unwrap().pop_front().unwrap_or(Answer::Hang))
}

fn watcher(client: &Client) -> Watcher<Thing> {
    client.watch(WatchTarget {
        path: "/api/v1/things".to_owned(),
        ..WatchTarget::default()
    })
}

/// Changes in short: `=` listed, `+` applied, `-` deleted.
fn short(change: &Change<Thing>) -> String {
    let name = |thing: &Thing| format!("{}{}", thing.metadata.name, thing.data);
    match change {
        Change::Listed(things) => {
            let names: Vec<String> = things.iter().map(name).collect();
            format!("={}", names.join(","))
        }
        Change::Applied(thing) => format!("+{}", name(thing)),
        Change::Deleted(thing) => format!("-{}", name(thing)),
    }
}

async fn next(watcher: &mut Watcher<Thing>) -> String {
    match timeout(Duration::from_secs(3600), watcher.next()).await {
        Ok(change) => short(&change),
        Err(_) => "nothing".to_owned(),
    }
}

fn write(to: &UnboundedSender<String>, line: &Value) {
    to.send(format!("{line}\n")).unwrap();
}

fn is_streaming_list(asked: &Asked) -> bool {
    asked.has("sendInitialEvents=true") && asked.has("resourceVersionMatch=NotOlderThan")
}

#[tokio::test(start_paused = true)]
async fn what_there_is_comes_first_and_then_what_changes() {
    for http2 in [false, true] {
        let (answer, to) = Answer::lines(&[
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
async fn a_watch_that_ends_goes_on_where_it_was() {
    let (first, to) = Answer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(5, true)]);
    let (second, to_second) = Answer::lines(&[]);
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
    let seconds = |asked: &Asked| -> u64 {
        let (_, rest) = asked.path.split_once("timeoutSeconds=").unwrap();
        rest.split('&').next().unwrap().parse().unwrap()
    };
    let mut all = Vec::new();
    for least in [None, Some(Duration::from_secs(1800))] {
        let server = TestServer::new(|_| Answer::lines(&[bookmark(1, true)]).0);
        let client = server.client(true);
        for _ in 0..10 {
            let mut watcher = watcher(&client);
            if let Some(least) = least {
                watcher = watcher.lasting(least);
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

fn page(names: &[&str], version: u32, continues: &str) -> Answer {
    let items: Vec<Value> = names.iter().map(|name| thing(name, 1, 1)).collect();
    let metadata = json!({"resourceVersion": version.to_string(), "continue": continues});
    Answer::Json(
        200,
        json!({"kind": "ThingList", "metadata": metadata, "items": items}),
    )
}

#[tokio::test(start_paused = true)]
async fn without_streaming_lists_there_are_pages() {
    for refused in [422, 400] {
        let (watch, to) = Answer::lines(&[]);
        let server = scripted(vec![
            refusal(refused, "Invalid"),
            page(&["a", "b"], 7, "next/1"),
            page(&["c"], 7, ""),
            watch,
            page(&[], 9, ""),
        ]);
        let client = server.client(true);
        let mut first = watcher(&client);
        assert_eq!(next(&mut first).await, "=a1,b1,c1");
        write(&to, &event("ADDED", thing("d", 8, 1)));
        assert_eq!(next(&mut first).await, "+d1");
        let mut second = watcher(&client);
        assert_eq!(next(&mut second).await, "=");
        let asked = server.asked();
        assert!(is_streaming_list(&asked[0]));
        assert!(asked[1].has("limit=500") && !asked[1].path.contains("resourceVersion"));
        assert!(asked[2].has("limit=500") && asked[2].has("continue=next%2F1"));
        assert!(asked[3].has("resourceVersion=7") && !is_streaming_list(&asked[3]));
        assert!(
            asked[4].has("limit=500"),
            "the server is not asked twice for what it can't do"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_came_too_late_means_one_list_without_pages() {
    let server = scripted(vec![
        refusal(422, "Invalid"),
        page(&["a"], 7, "more"),
        refusal(410, "Expired"),
        page(&["a", "b"], 9, ""),
    ]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=a1,b1");
    assert!(!server.asked()[3].path.contains("limit"));
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_stands_still_is_replaced_by_pages() {
    let (silent, _to) = Answer::lines(&[event("ADDED", thing("a", 1, 1))]);
    let server = scripted(vec![silent, page(&["a", "b"], 7, "")]);
    let mut watcher = watcher(&server.client(true));
    let start = Instant::now();
    assert_eq!(next(&mut watcher).await, "=a1,b1");
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn when_the_version_is_too_old_everything_is_listed_at_once() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    for by_event in [true, false] {
        let (first, to) = Answer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(5, true)]);
        let (again, _to) = Answer::lines(&[event("ADDED", thing("b", 9, 1)), bookmark(9, true)]);
        let server = scripted(match by_event {
            true => vec![first, again],
            false => vec![first, refusal(410, "Expired"), again],
        });
        let mut watcher = watcher(&server.client(true));
        assert_eq!(next(&mut watcher).await, "=a1");
        let start = Instant::now();
        let waiting = tokio::spawn(async move { next(&mut watcher).await });
        tokio::time::sleep(Duration::from_secs(100)).await;
        if by_event {
            write(&to, &event("ERROR", gone.clone()));
        }
        drop(to);
        assert_eq!(waiting.await.unwrap(), "=b1");
        assert_eq!(start.elapsed().as_secs(), 100);
        assert!(is_streaming_list(server.asked().last().unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_versions_are_always_too_old_is_not_hammered() {
    let server = TestServer::new(|asked| match is_streaming_list(asked) {
        true => {
            let gone = event("ERROR", json!({"code": 410}));
            Answer::lines(&[bookmark(5, true), gone]).0
        }
        false => refusal(410, "Expired"),
    });
    let client = server.client(true);
    let mut watcher = watcher(&client);
    let minute = async {
        loop {
            watcher.next().await;
        }
    };
    assert!(timeout(Duration::from_secs(60), minute).await.is_err());
    assert!(server.asked().len() < 10, "{}", server.asked().len());
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_away_the_waits_grow_and_the_reason_is_told() {
    let server = TestServer::new(|_| {
        Answer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(1, true)]).0
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
    let long = Answer::With(429, vec![("retry-after", "100".to_owned())], String::new());
    let (listed, _to) = Answer::lines(&[bookmark(1, true)]);
    let server = scripted(vec![long, listed]);
    let mut watcher = watcher(&server.client(true));
    let start = Instant::now();
    assert_eq!(next(&mut watcher).await, "=");
    assert!((100..=200).contains(&start.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_server_loses_nothing() {
    let (first, _to) = Answer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(5, true)]);
    let (second, _to) = Answer::lines(&[event("DELETED", thing("a", 6, 1))]);
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
    let (answer, to) = Answer::lines(&[]);
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

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_passed_over() {
    let odd = json!({"metadata": {"name": "odd", "resourceVersion": "8"}, "data": "text"});
    let (first, to) = Answer::lines(&[
        event("ADDED", odd.clone()),
        event("ADDED", thing("a", 1, 1)),
        bookmark(5, true),
        event("MODIFIED", odd.clone()),
        event("MODIFIED", thing("a", 9, 2)),
    ]);
    let items = json!({"metadata": {"resourceVersion": "7"}, "items": [odd, thing("b", 1, 1)]});
    let server = scripted(vec![
        first,
        refusal(410, "Expired"),
        refusal(400, "BadRequest"),
        Answer::Json(200, items),
    ]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=a1");
    assert_eq!(next(&mut watcher).await, "+a2");
    drop(to);
    assert_eq!(next(&mut watcher).await, "=b1");
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_ends_the_watch_and_not_the_watcher() {
    let (first, to) = Answer::lines(&[bookmark(5, true)]);
    let (second, _to) = Answer::lines(&[event("ADDED", thing("a", 6, 1))]);
    to.send("{\"type\": \"ADDED\", \"obj\n".to_owned()).unwrap();
    let server = scripted(vec![first, second]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=");
    assert_eq!(next(&mut watcher).await, "+a1");
    assert!(server.asked()[1].has("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_each_time_is_passed_with_a_list() {
    let (first, _to) = Answer::lines(&[bookmark(5, true)]);
    let mut answers = vec![first];
    for _ in 0..3 {
        let (damaged, to) = Answer::lines(&[]);
        to.send("{\"type\": \"ADDED\", \"obj\n".to_owned()).unwrap();
        answers.push(damaged);
    }
    let (last, _to) = Answer::lines(&[event("ADDED", thing("a", 6, 1)), bookmark(6, true)]);
    answers.push(last);
    let server = scripted(answers);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=");
    drop(_to);
    assert_eq!(next(&mut watcher).await, "=a1");
    let asked = server.asked();
    assert!(asked[3].has("resourceVersion=5") && is_streaming_list(&asked[4]));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_of_an_object_is_told_until_it_can() {
    let odd = |version| {
        let mut odd = thing("odd", version, 1);
        odd["metadata"]["labels"] = json!(7);
        odd["more"] = json!({"a": 1});
        odd
    };
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    #[serde(default)]
    struct Odd {
        metadata: OddMeta,
        more: std::collections::BTreeMap<String, String>,
    }
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    #[serde(default)]
    struct OddMeta {
        name: String,
        labels: Option<Vec<String>>,
    }
    let (first, to) = Answer::lines(&[event("ADDED", odd(1)), bookmark(5, true)]);
    let items =
        json!({"metadata": {"resourceVersion": "9"}, "items": [odd(9), null, {"metadata": null}]});
    let server = scripted(vec![
        first,
        refusal(410, "Expired"),
        refusal(400, "BadRequest"),
        Answer::Json(200, items),
    ]);
    let client = server.client(true);
    let mut watcher = client.watch::<Odd>(WatchTarget {
        path: "/api/v1/namespaces/ns/things".to_owned(),
        ..WatchTarget::default()
    });
    let shown = || -> Vec<String> {
        let all = client.unread().list();
        all.iter()
            .map(|one| {
                let fields: Vec<&str> = one.fields.iter().map(|field| &*field.field).collect();
                format!("{}: {}", one.object, fields.join(" "))
            })
            .collect()
    };
    let Change::Listed(listed) = watcher.next().await else {
        panic!("a list comes first");
    };
    assert_eq!(listed[0].metadata.name, "odd");
    assert_eq!(shown(), ["things ns/odd: metadata.labels more.a"]);
    write(&to, &event("MODIFIED", thing("odd", 6, 1)));
    watcher.next().await;
    assert_eq!(shown(), [""; 0]);
    write(&to, &event("MODIFIED", odd(7)));
    watcher.next().await;
    assert_eq!(shown().len(), 1);
    drop(to);
    assert!(matches!(watcher.next().await, Change::Listed(all) if all.len() == 3));
    assert_eq!(shown(), ["things ns/odd: metadata.labels more.a"]);
    drop(watcher);
    assert_eq!(shown(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_list_is_not_an_empty_one() {
    let meta = json!({"resourceVersion": "7", "continue": null, "remainingItemCount": null});
    let odd = [
        json!({}),
        json!({"kind": "Status", "metadata": {}, "status": "Success"}),
        json!({"kind": "ThingList", "metadata": meta, "items": "none"}),
        json!([]),
        json!(null),
    ];
    let mut answers = vec![refusal(400, "BadRequest")];
    answers.extend(odd.into_iter().map(|body| Answer::Json(200, body)));
    answers.push(Answer::Json(
        200,
        json!({"kind": "ThingList", "metadata": meta, "items": null}),
    ));
    let server = scripted(answers);
    let client = server.client(true);
    client.without_streaming_lists();
    let mut watcher = watcher(&client);
    assert_eq!(next(&mut watcher).await, "=");
    assert_eq!(server.asked().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn silence_after_bookmarks_means_that_nobody_is_there() {
    for bookmarks in [true, false] {
        let (first, to) = Answer::lines(&[bookmark(5, true)]);
        let (second, _to) = Answer::lines(&[event("ADDED", thing("a", 6, 1))]);
        let server = scripted(vec![first, second]);
        let mut watcher = watcher(&server.client(true));
        assert_eq!(next(&mut watcher).await, "=");
        let start = Instant::now();
        if bookmarks {
            write(&to, &bookmark(5, false));
        }
        assert_eq!(next(&mut watcher).await, "+a1");
        let took = start.elapsed().as_secs();
        match bookmarks {
            true => assert!((240..=245).contains(&took), "{took}"),
            false => assert!(
                (330..=640).contains(&took),
                "the agreed end and a bit: {took}"
            ),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_half_open_is_found_out_by_pings() {
    let connections = Arc::new(Mutex::new(0));
    let server = {
        let (answer, to) = Answer::lines(&[event("ADDED", thing("a", 6, 1)), bookmark(6, true)]);
        std::mem::forget(to);
        scripted(vec![answer])
    };
    // The first connection leads nowhere; the others lead to the server.
    let real = server.config(true).connector.unwrap();
    let counted = Arc::clone(&connections);
    let connector = crate::Connector::new(move || {
        let (counted, real) = (Arc::clone(&counted), real.clone());
        async move {
            let first = {
                let mut count = counted.lock().unwrap();
                *count += 1;
                *count == 1
            };
            if first {
                let (here, there) = tokio::io::duplex(64 * 1024);
                std::mem::forget(there);
                return Ok(Box::new(here) as Box<dyn crate::Stream>);
            }
            (real.connect)().await
        }
    });
    let config = server.config(true).over(connector.http2());
    // The request timeout is longer than the pings take.
    let client = Client::new(config, crate::ClientOptions::default())
        .unwrap()
        .with_limits(0.0, 0, Duration::from_secs(600));
    let mut watcher = watcher(&client);
    let start = Instant::now();
    assert_eq!(next(&mut watcher).await, "=a1");
    assert!(
        start.elapsed() < Duration::from_secs(50),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_reload_the_watch_goes_on_over_a_new_connection() {
    let (first, _to) = Answer::lines(&[bookmark(5, true)]);
    let (second, _to) = Answer::lines(&[event("ADDED", thing("a", 6, 1))]);
    let server = scripted(vec![first, second]);
    let client = server.client(true);
    let mut watcher = watcher(&client);
    assert_eq!(next(&mut watcher).await, "=");
    let start = Instant::now();
    let waiting = tokio::spawn(async move { next(&mut watcher).await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    client.reload();
    assert_eq!(waiting.await.unwrap(), "+a1");
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(server.connections(), 2);
    assert!(server.asked()[1].has("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_dropped_ends_its_watch_and_keeps_the_connection() {
    let server = TestServer::new(|_| Answer::lines(&[bookmark(5, true)]).0);
    let client = server.client(true);
    for _ in 0..300 {
        let mut watcher = watcher(&client);
        watcher.next().await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_reads_does_not_hold_up_requests() {
    let mut lines = vec![bookmark(5, true)];
    let large = "x".repeat(30_000);
    lines.extend((0..10).map(|_| json!({"type": "ADDED", "object": {"metadata": {}, "x": large}})));
    let lines = Arc::new(lines);
    let server = TestServer::new(move |asked| match asked.has("watch=true") {
        true => {
            let (answer, to) = Answer::lines(&lines);
            std::mem::forget(to);
            answer
        }
        false => Answer::Json(200, json!({})),
    });
    let client = server.client(true);
    let mut watchers: Vec<_> = (0..40).map(|_| watcher(&client)).collect();
    for watcher in &mut watchers {
        watcher.next().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    client
        .get::<Value>("/lease")
        .await
        .expect("requests have a connection of their own");
}

#[tokio::test]
async fn a_watcher_at_rest_is_small() {
    let server = scripted(vec![]);
    let watcher: Watcher<Thing> = watcher(&server.client(true));
    let State::Ready(feed) = watcher.state else {
        panic!("nobody has asked yet");
    };
    let run = feed.follow();
    assert!(size_of_val(&run) < 2048, "{}", size_of_val(&run));
}
