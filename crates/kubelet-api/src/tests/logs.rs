//! `/containerLogs`: options, refusals, and following.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use rubelet_server::{LogError, LogOutput, LogRequest, LogSince, LogStream};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    sync::mpsc,
};

use super::server::{Server, Setup};
use crate::EndpointOptions;

fn channel() -> (mpsc::Sender<io::Result<Bytes>>, LogStream) {
    let (sender, receiver) = mpsc::channel(1);
    let stream = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    (sender, Box::pin(stream))
}

fn answer(server: &Server, answer: Result<&'static str, LogError>) -> Arc<Mutex<Vec<LogRequest>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    *server.node.log.lock() = Some(Box::new(move |request| {
        noted.lock().push(request);
        answer.map(|text| {
            let pieces = stream::iter([Ok(Bytes::from_static(text.as_bytes()))]);
            Box::pin(pieces) as LogStream
        })
    }));
    seen
}

#[tokio::test]
async fn options_reach_the_node() {
    let server = Server::with(Setup {
        options: EndpointOptions {
            split_log_streams: true,
            ..EndpointOptions::default()
        },
        ..Setup::default()
    })
    .await;
    let plain = LogRequest {
        namespace: "default".to_owned(),
        pod: "db".to_owned(),
        container: "b".to_owned(),
        follow: false,
        previous: false,
        since: None,
        timestamps: false,
        tail_lines: None,
        limit_bytes: None,
        output: None,
    };
    for (query, expected) in [
        ("", plain.clone()),
        (
            "?follow=true&previous=true&timestamps=true&tailLines=3&limitBytes=9&sinceSeconds=5",
            LogRequest {
                follow: true,
                previous: true,
                timestamps: true,
                tail_lines: Some(3),
                limit_bytes: Some(9),
                since: Some(LogSince::Seconds(5)),
                ..plain.clone()
            },
        ),
        (
            "?stream=Stderr",
            LogRequest {
                output: Some(LogOutput::Stderr),
                ..plain
            },
        ),
    ] {
        let seen = answer(&server, Ok("one\ntwo\n"));
        let reply = server
            .get(&format!("/containerLogs/default/db/b{query}"))
            .await;
        assert_eq!((reply.code, &*reply.body), (200, "one\ntwo\n"), "{query}");
        assert!(reply.headers.contains("content-type: text/plain"));
        assert!(reply.headers.contains("transfer-encoding: chunked"));
        assert_eq!(*seen.lock(), [expected], "{query}");
    }
}

#[tokio::test]
async fn what_is_missing_is_said_as_the_kubelet_says_it() {
    let server = Server::start().await;
    for (path, code, body) in [
        ("default/x/a", 404, "pod \"x\" does not exist"),
        ("other/web/a", 404, "pod \"web\" does not exist"),
        (
            "default/web/b",
            404,
            "container \"b\" not found in pod \"web\"",
        ),
        (
            "default/web/a?tailLines=many",
            400,
            r#"{"message": "Unable to decode query."}"#,
        ),
        (
            "default/web/a?limitBytes=0",
            422,
            r#"{"message": "Invalid request."}"#,
        ),
        (
            "default/web/a?stream=Stdout",
            400,
            "unable to return the given log stream: \"Stdout\". Please enable \
             PodLogsQuerySplitStreams feature gate in kubelet",
        ),
    ] {
        let reply = server.get(&format!("/containerLogs/{path}")).await;
        assert_eq!((reply.code, &*reply.body), (code, body), "{path}");
    }
    for (error, code) in [
        (
            LogError::BadRequest(
                "previous terminated container \"a\" in pod \"web\" not found".to_owned(),
            ),
            400,
        ),
        (LogError::NotFound("gone".to_owned()), 404),
        (LogError::Internal("broken".to_owned()), 500),
    ] {
        let text = error.to_string();
        answer(&server, Err(error));
        let reply = server.get("/containerLogs/default/web/a").await;
        assert_eq!((reply.code, reply.body), (code, text));
    }
}

#[tokio::test]
async fn a_followed_log_comes_piece_by_piece_and_is_cut_off_when_the_agent_stops() {
    let server = Server::start().await;
    let (pieces, log) = channel();
    *server.node.log.lock() = Some(Box::new(|_| Ok(log)));
    let stream = server.connect(None).await;
    let mut stream = BufReader::new(stream);
    let request = "GET /containerLogs/default/web/a?follow=true HTTP/1.1\r\nHost: node\r\n\
                   Authorization: Bearer tok-ann\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
    }
    for piece in ["first\n", "second\n"] {
        pieces
            .send(Ok(Bytes::from_static(piece.as_bytes())))
            .await
            .unwrap();
        let mut lines = String::new();
        for _ in 0..3 {
            stream.read_line(&mut lines).await.unwrap();
        }
        let expected = format!("{:X}\r\n{piece}\r\n", piece.len());
        assert_eq!(lines, expected);
    }
    let notes = Arc::clone(&server.notes);
    assert_eq!(
        notes.take(),
        [
            "began GET containerLogs readwrite",
            "answered containerLogs 200"
        ]
    );
    server.stop().await;
    assert!(pieces.is_closed());
    assert_eq!(notes.take(), ["ended containerLogs"]);
    // No last chunk: the reader sees that it was cut off.
    assert_eq!(super::server::rest(&mut stream).await, "");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_following() {
    let server = Server::start().await;
    let (pieces, log) = channel();
    *server.node.log.lock() = Some(Box::new(|_| Ok(log)));
    let mut stream = server.connect(None).await;
    let request = "GET /containerLogs/default/web/a?follow=true HTTP/1.1\r\nHost: node\r\n\
                   Authorization: Bearer tok-ann\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(stream);
    pieces.closed().await;
}
