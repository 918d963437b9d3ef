//! Streams of descriptors.

use std::os::fd::OwnedFd;

use rustix::{
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    pipe::pipe,
};

use super::*;
use crate::copy;

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap()
}

#[tokio::test]
async fn a_pipe_ends_when_its_writer_closes_it() {
    let (reader, writer) = pipe().unwrap();
    let (mut source, mut sink) = (
        FdSource::new(reader, None).unwrap(),
        FdSink::new(writer).unwrap(),
    );
    sink.write("hello".into()).await.unwrap();
    sink.close().await.unwrap();
    sink.close().await.unwrap();
    assert_eq!(source.read().await.unwrap().unwrap(), "hello");
    assert_eq!(source.read().await.unwrap(), None);
}

#[tokio::test]
async fn after_the_end_of_the_process_the_output_is_read_and_not_waited_for() {
    let (reader, writer) = pipe().unwrap();
    let (end, ended) = watch::channel(false);
    let mut source = FdSource::new(reader, Some(ended)).unwrap();
    rustix::io::write(&writer, b"last words").unwrap();
    end.send_replace(true);
    assert_eq!(source.read().await.unwrap().unwrap(), "last words");
    assert_eq!(
        source.read().await.unwrap(),
        None,
        "the writer is still open"
    );
    drop(writer);
}

#[tokio::test]
async fn a_closed_socket_can_still_be_read() {
    let (ours, theirs) = pair();
    let mut sink = FdSink::new(ours.try_clone().unwrap()).unwrap();
    let mut source = FdSource::new(ours, None).unwrap();
    sink.write("question".into()).await.unwrap();
    sink.close().await.unwrap();
    let mut text = [0; 32];
    assert_eq!(rustix::io::read(&theirs, &mut text).unwrap(), 8);
    assert_eq!(rustix::io::read(&theirs, &mut text).unwrap(), 0);
    rustix::io::write(&theirs, b"answer").unwrap();
    assert_eq!(source.read().await.unwrap().unwrap(), "answer");
}

#[tokio::test]
async fn more_than_a_pipe_holds_waits_for_its_reader() {
    let (reader, writer) = pipe().unwrap();
    let (from, to) = pipe().unwrap();
    let mut input = FdSink::new(to).unwrap();
    let mut output = FdSource::new(reader, None).unwrap();
    let copying = tokio::spawn(async move {
        let (mut source, mut sink) = (FdSource::new(from, None)?, FdSink::new(writer)?);
        copy(&mut source, &mut sink).await
    });
    let writing = tokio::spawn(async move {
        for _ in 0..64 {
            input.write(vec![7; 10_000].into()).await.unwrap();
        }
        input.close().await.unwrap();
    });
    let mut total = 0;
    while let Some(bytes) = output.read().await.unwrap() {
        assert!(bytes.iter().all(|byte| *byte == 7));
        total += bytes.len();
    }
    assert_eq!(total, 640_000);
    writing.await.unwrap();
    copying.await.unwrap().unwrap();
}

#[tokio::test]
async fn nobody_reads() {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let mut sink = FdSink::new(writer).unwrap();
    let error = sink.write("x".into()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
