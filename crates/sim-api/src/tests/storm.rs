//! Many concurrent clients with all faults: the server stays consistent, and a client that lists and
//! watches correctly converges to its state.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use serde_json::{Value, json};

use super::{PODS, TestClient, pod_on, server};
use crate::{SimApi, dice::Dice, profile};

/// Versions by name.
type KnownVersions = BTreeMap<String, String>;

fn entry(object: &Value) -> (String, String) {
    let text = |field: &str| {
        object["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (text("name"), text("resourceVersion"))
}

/// Creates, changes and deletes pods with a few names, and ignores the results.
async fn write(api: &SimApi, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut client = TestClient::new(api).await;
    for _ in 0..60 {
        let name = format!("pod-{}", dice.next() % 5);
        let path = format!("{PODS}/{name}");
        let (method, path, body) = match dice.next() % 4 {
            0 | 1 => (Method::POST, PODS.to_owned(), pod_on(&name, "n")),
            2 => {
                let status = json!({ "status": { "message": dice.next().to_string() } });
                (Method::PATCH, format!("{path}/status"), status)
            }
            _ => (
                Method::DELETE,
                path,
                json!({ "gracePeriodSeconds": dice.next() % 2 }),
            ),
        };
        let media_type = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let sent = client.try_send(method, &path, media_type, body.to_string());
        let limit = Duration::from_secs(5);
        let is_well = matches!(tokio::time::timeout(limit, sent).await, Ok(Ok(_)));
        // The body of a response is not read, so the connection can't be reused.
        client = TestClient::new(api).await;
        if !is_well {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// One list and one watch; false if it must start again.
async fn follow_once(api: &SimApi, known: &mut KnownVersions, last: Option<u64>) -> Option<bool> {
    let limit = Duration::from_secs(20);
    let mut client = TestClient::new(api).await;
    let list = client.try_send(Method::GET, "/api/v1/pods", "", String::new());
    let answer = tokio::time::timeout(limit, list).await.ok()?.ok()?;
    if answer.status() != 200 {
        return None;
    }
    let body = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .ok()?;
    let list: Value = serde_json::from_slice(&body.to_bytes()).ok()?;
    *known = list["items"].as_array()?.iter().map(entry).collect();
    let mut version = list["metadata"]["resourceVersion"].as_str()?.to_owned();
    loop {
        if last.is_some_and(|last| version.parse::<u64>().is_ok_and(|version| version >= last)) {
            return Some(true);
        }
        let path =
            format!("/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={version}");
        let mut client = TestClient::new(api).await;
        let sent = client.try_send(Method::GET, &path, "", String::new());
        let answer = tokio::time::timeout(limit, sent).await.ok()?.ok()?;
        if answer.status() != 200 {
            return None;
        }
        let mut body = answer.into_body();
        let mut read = Vec::new();
        // A watch that is silent for long is abandoned: it may have stalled.
        while let Ok(Some(Ok(frame))) =
            tokio::time::timeout(limit, http_body_util::BodyExt::frame(&mut body)).await
        {
            read.extend(frame.into_data().unwrap_or_default());
            while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = read.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).ok()?;
                let (name, at) = entry(&event["object"]);
                match event["type"].as_str()? {
                    "ADDED" => assert!(known.insert(name, at.clone()).is_none(), "{event}"),
                    "MODIFIED" => assert!(known.insert(name, at.clone()).is_some(), "{event}"),
                    "DELETED" => assert!(known.remove(&name).is_some(), "{event}"),
                    "BOOKMARK" => {}
                    _ => return None,
                }
                assert!(at.parse::<u64>().unwrap() >= version.parse().unwrap());
                version = at;
            }
        }
        if last.is_none() {
            return Some(false);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_retries_converges_to_the_server() {
    for seed in 1..=8 {
        let api = server().await;
        api.configure(|config| config.bookmark_every = Duration::from_secs(2));
        let rules = profile("rough").unwrap();
        rules.into_iter().for_each(|rule| api.add_fault(rule));
        let mut known = KnownVersions::new();
        let following = async {
            loop {
                let _ = follow_once(&api, &mut known, None).await;
            }
        };
        let writing = async {
            tokio::join!(
                write(&api, seed),
                write(&api, seed + 100),
                write(&api, seed + 200)
            );
        };
        let trouble = async {
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_secs(3)).await;
                api.disconnect();
                tokio::time::sleep(Duration::from_secs(3)).await;
                api.compact();
                api.hang_connections();
            }
        };
        tokio::select! {
            () = following => {}
            _ = async { tokio::join!(writing, trouble) } => {}
        }
        api.clear_faults();
        let last = api.version();
        while follow_once(&api, &mut known, Some(last)).await != Some(true) {}
        let held: KnownVersions = api.list("pods").iter().map(entry).collect();
        assert_eq!(known, held, "seed {seed}");
        let faults = api.count(|request| request.fault.is_some());
        assert!(faults > 10, "seed {seed}: {faults} faults only");
    }
}
