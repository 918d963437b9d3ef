//! Container logs: options, choice of the container, streaming and its end.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use serde_json::json;

use super::fixture::TestServer;
use crate::{LogError, LogRequest, LogSince, LogStream, Object};

fn channel() -> (mpsc::Sender<io::Result<Bytes>>, LogStream) {
    let (sender, receiver) = mpsc::channel(1);
    let stream = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    (sender, Box::pin(stream))
}

fn fixed(text: &'static str) -> LogStream {
    Box::pin(stream::iter([Ok(Bytes::from_static(text.as_bytes()))]))
}

#[tokio::test]
async fn every_option_reaches_the_log() {
    let server = TestServer::with_pods().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    for query in [
        "",
        "?container=b&follow=true&previous=true&sinceSeconds=30&timestamps=true&tailLines=0\
         &limitBytes=7",
        "?container=b&sinceTime=2026-03-01T12:00:00Z",
    ] {
        let seen = seen.clone();
        *server.node.log.lock() = Some(Box::new(move |request| {
            seen.lock().push(request);
            Ok(fixed("line\n"))
        }));
        let pod = if query.is_empty() { "web" } else { "db" };
        let path = format!("/api/v1/namespaces/default/pods/{pod}/log{query}");
        let reply = server.get(&path).await;
        assert_eq!(
            (reply.code, reply.body.as_str()),
            (200, "line\n"),
            "{query}"
        );
        assert!(reply.headers.contains("content-type: text/plain"));
    }
    let plain = LogRequest {
        namespace: "default".to_owned(),
        pod: "web".to_owned(),
        container: "a".to_owned(),
        follow: false,
        previous: false,
        since: None,
        timestamps: false,
        tail_lines: None,
        limit_bytes: None,
        output: None,
    };
    let db = LogRequest {
        pod: "db".to_owned(),
        container: "b".to_owned(),
        ..plain.clone()
    };
    let full = LogRequest {
        follow: true,
        previous: true,
        since: Some(LogSince::Seconds(30)),
        timestamps: true,
        tail_lines: Some(0),
        limit_bytes: Some(7),
        ..db.clone()
    };
    let time = "2026-03-01T12:00:00Z".parse().unwrap();
    let since_time = LogRequest {
        since: Some(LogSince::Time(time)),
        ..db
    };
    assert_eq!(*seen.lock(), [plain, full, since_time]);
}

#[tokio::test]
async fn what_can_not_be_meant_is_refused() {
    let server = TestServer::with_pods().await;
    for (path, code, message) in [
        (
            "db/log",
            400,
            "a container name must be specified for pod db, choose one of: [a b]",
        ),
        (
            "db/log?container=c",
            400,
            "container c is not valid for pod db; it has a, b",
        ),
        ("x/log", 404, r#"pods "x" not found"#),
        ("web/log?tailLines=-1", 400, "tailLines: Invalid value"),
        ("web/log?limitBytes=0", 400, "limitBytes: Invalid value"),
        ("web/log?sinceSeconds=0", 400, "sinceSeconds: Invalid value"),
        (
            "web/log?sinceTime=yesterday",
            400,
            "sinceTime: Invalid value",
        ),
        ("web/log?follow=perhaps", 400, "follow: Invalid value"),
        ("web/log?stream=Both", 400, "stream: Invalid value"),
        (
            "web/log?stream=Stdout&tailLines=1",
            400,
            "`tailLines` and specific `stream` are mutually exclusive",
        ),
        (
            "web/log?sinceSeconds=1&sinceTime=2026-03-01T12:00:00Z",
            400,
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("web/log", 404, "a has no log"),
    ] {
        let reply = server
            .get(&format!("/api/v1/namespaces/default/pods/{path}"))
            .await;
        let status = reply.json();
        assert_eq!(reply.code, code, "{path}");
        assert!(
            status["message"].as_str().unwrap().contains(message),
            "{path}: {status}"
        );
    }
}

#[tokio::test]
async fn containers_of_every_kind_have_logs() {
    let server = TestServer::start().await;
    let pod = json!({
        "metadata": { "namespace": "default", "name": "all" },
        "spec": {
            "initContainers": [{ "name": "i" }], "containers": [{ "name": "c" }],
            "ephemeralContainers": [{ "name": "e" }],
        },
    });
    let object = Object::new("default", "all", move || pod.clone());
    server.node.pods.put(object);
    for name in ["i", "c", "e"] {
        *server.node.log.lock() = Some(Box::new(|_| Ok(fixed("line\n"))));
        let path = format!("/api/v1/namespaces/default/pods/all/log?container={name}");
        assert_eq!(server.get(&path).await.body, "line\n", "{name}");
    }
}

#[tokio::test]
async fn the_nodes_own_refusal_keeps_its_kind() {
    let server = TestServer::with_pods().await;
    for (error, code) in [
        (
            LogError::BadRequest("container \"a\" is waiting to start".to_owned()),
            400,
        ),
        (LogError::NotFound("gone".to_owned()), 404),
        (LogError::Internal("disk".to_owned()), 500),
    ] {
        let message = error.to_string();
        *server.node.log.lock() = Some(Box::new(move |_| Err(error)));
        let reply = server.get("/api/v1/namespaces/default/pods/web/log").await;
        assert_eq!(reply.code, code);
        assert_eq!(reply.json()["message"], message);
    }
}

#[tokio::test]
async fn a_followed_log_arrives_line_by_line_until_it_ends() {
    let server = TestServer::with_pods().await;
    let (lines, log) = channel();
    *server.node.log.lock() = Some(Box::new(move |_| Ok(log)));
    let path = "/api/v1/namespaces/default/pods/web/log?follow=true";
    let mut reply = server.open("GET", path, "").await;
    for line in ["one\n", "two\n"] {
        lines
            .send(Ok(Bytes::from_static(line.as_bytes())))
            .await
            .unwrap();
        assert_eq!(reply.piece().await.as_deref(), Some(line));
    }
    drop(lines);
    assert_eq!(reply.piece().await, None);
}

#[tokio::test]
async fn a_log_that_breaks_is_cut_off_rather_than_ended() {
    let server = TestServer::with_pods().await;
    let (lines, log) = channel();
    *server.node.log.lock() = Some(Box::new(move |_| Ok(log)));
    let path = "/api/v1/namespaces/default/pods/web/log?follow=true";
    let mut reply = server.open("GET", path, "").await;
    lines.send(Ok(Bytes::from_static(b"one\n"))).await.unwrap();
    assert_eq!(reply.piece().await.as_deref(), Some("one\n"));
    lines.send(Err(io::Error::other("disk"))).await.unwrap();
    assert!(reply.try_piece().await.is_err());

    let (_lines, log) = channel();
    *server.node.log.lock() = Some(Box::new(move |_| Ok(log)));
    let mut reply = server.open("GET", path, "").await;
    server.stop().await;
    assert!(reply.try_piece().await.is_err());
}

#[tokio::test]
async fn a_reader_who_goes_ends_the_log() {
    let server = TestServer::with_pods().await;
    let (lines, log) = channel();
    *server.node.log.lock() = Some(Box::new(move |_| Ok(log)));
    let path = "/api/v1/namespaces/default/pods/web/log?follow=true";
    drop(server.open("GET", path, "").await);
    lines.closed().await;
}

#[tokio::test]
async fn a_reader_that_reads_nothing_costs_no_memory() {
    let server = TestServer::with_pods().await;
    let pulled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&pulled);
    *server.node.log.lock() = Some(Box::new(move |_| {
        let piece = Bytes::from(vec![b'x'; 16 * 1024]);
        Ok(Box::pin(stream::repeat_with(move || {
            counter.fetch_add(piece.len(), Ordering::Relaxed);
            Ok(piece.clone())
        })))
    }));
    let path = "/api/v1/namespaces/default/pods/web/log?follow=true";
    let silent = server.open("GET", path, "").await;
    // Each of these gives the log a turn, if it had room.
    for _ in 0..200 {
        server.get("/version").await;
    }
    let held = pulled.load(Ordering::Relaxed);
    assert!(held < 8 * 1024 * 1024, "{held}");
    drop(silent);
}
