//! What is at the other end of sessions: a container with a few commands, and its files.

use std::{io, path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use rubelet_cri::{CriError, CriErrorKind, CriResult, v1};
use rubelet_files::{Attributes, ContainerRoot, FilesError};
use rubelet_server::{FilesAnswer, FilesRefusal, FilesRequest, SessionAction, SessionRequest};
use rubelet_streaming::{
    Duplex, PortDialer, RemoteProcess, SessionExit, SessionTarget, Sessions, Sink, Source,
    StdStreams,
};
use tokio::sync::mpsc;

/// The other end of a session.
pub(super) fn target(request: &SessionRequest) -> SessionTarget {
    let runtime = Arc::new(Commands);
    match &request.action {
        SessionAction::Exec {
            container,
            command,
            streams,
        } => {
            let call = v1::ExecRequest {
                container_id: container.clone(),
                cmd: command.clone(),
                tty: streams.tty,
                stdin: streams.stdin,
                stdout: streams.stdout,
                stderr: streams.stderr,
            };
            SessionTarget::Exec(call, runtime)
        }
        SessionAction::Attach { container, streams } => {
            let call = v1::AttachRequest {
                container_id: container.clone(),
                tty: streams.tty,
                stdin: streams.stdin,
                stdout: streams.stdout,
                stderr: streams.stderr,
            };
            SessionTarget::Attach(call, runtime)
        }
        SessionAction::PortForward { .. } => {
            SessionTarget::PortForward(v1::PortForwardRequest::default(), runtime)
        }
    }
}

/// `echo WORDS`, `container`, `cat`, `exit CODE`, `break`; behind ports, what `cat` does, and 1 refuses.
struct Commands;

#[async_trait]
impl Sessions for Commands {
    async fn exec(&self, request: v1::ExecRequest) -> CriResult<RemoteProcess> {
        let streams = StdStreams {
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
            tty: request.tty,
        };
        let words: Vec<&str> = request.cmd.iter().map(String::as_str).collect();
        let lost = || CriError::new("Exec", CriErrorKind::Unavailable, "the agent stopped");
        Ok(match words.as_slice() {
            ["echo", words @ ..] => process(streams, &format!("{}\n", words.join(" ")), Ok(0)),
            ["container"] => process(streams, &request.container_id, Ok(0)),
            ["streams"] => process(streams, &format!("{streams:?}"), Ok(0)),
            ["exit", code] => process(streams, "", Ok(code.parse().unwrap())),
            ["break"] => process(streams, "half", Err(lost())),
            _ => cat(streams),
        })
    }

    async fn attach(&self, request: v1::AttachRequest) -> CriResult<RemoteProcess> {
        let streams = StdStreams {
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
            tty: request.tty,
        };
        let name = request.container_id;
        Ok(process(streams, &format!("attached to {name}\n"), Ok(0)))
    }

    async fn port_forward(&self, _: &str) -> CriResult<Arc<dyn PortDialer>> {
        Ok(Arc::new(Self))
    }
}

#[async_trait]
impl PortDialer for Commands {
    async fn dial(&self, port: u16) -> CriResult<Duplex> {
        if port == 1 {
            let kind = CriErrorKind::Unavailable;
            return Err(CriError::new("PortForward", kind, "connection refused"));
        }
        let (sink, source) = echo();
        Ok(Duplex { source, sink })
    }
}

/// A process that prints something and ends.
fn process(streams: StdStreams, text: &str, code: CriResult<i32>) -> RemoteProcess {
    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(Bytes::from(text.to_owned())).unwrap();
    let (_, errors) = mpsc::channel(1);
    let (input, _) = mpsc::channel(1);
    RemoteProcess {
        stdin: streams.stdin.then(|| Box::new(To(Some(input))) as _),
        stdout: Some(Box::new(From(receiver))),
        stderr: streams.stderr.then(|| Box::new(From(errors)) as _),
        resize: None,
        exit: Box::pin(async { code.map(SessionExit::Code) }),
    }
}

/// A process that prints what it reads, and ends with that.
fn cat(streams: StdStreams) -> RemoteProcess {
    let (sink, source) = echo();
    let (_, errors) = mpsc::channel(1);
    RemoteProcess {
        stdin: streams.stdin.then_some(sink),
        stdout: Some(source),
        stderr: streams.stderr.then(|| Box::new(From(errors)) as _),
        resize: None,
        exit: Box::pin(async { Ok(SessionExit::Code(0)) }),
    }
}

fn echo() -> (Box<dyn Sink>, Box<dyn Source>) {
    let (sender, receiver) = mpsc::channel(1);
    (Box::new(To(Some(sender))), Box::new(From(receiver)))
}

struct From(mpsc::Receiver<Bytes>);

#[async_trait]
impl Source for From {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.0.recv().await.filter(|bytes| !bytes.is_empty()))
    }
}

struct To(Option<mpsc::Sender<Bytes>>);

#[async_trait]
impl Sink for To {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let sender = self.0.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let sent = sender.send(bytes).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
    async fn close(&mut self) -> io::Result<()> {
        self.0 = None;
        Ok(())
    }
}

/// Files below a directory, as those of a container.
pub(super) async fn files(root: &Path, request: FilesRequest) -> Result<FilesAnswer, FilesRefusal> {
    let refused = |error: FilesError| match error {
        FilesError::NotFound(_) => FilesRefusal::NotFound(error.to_string()),
        error => FilesRefusal::Invalid(error.to_string()),
    };
    let root = std::fs::File::open(root).unwrap();
    let root = ContainerRoot::of_directory(root.into(), 0, 0);
    let path = request.path.as_bytes();
    let Some(mut incoming) = request.incoming else {
        let mut stream = Vec::new();
        // What fails is told in the stream.
        let _ = root.source(path).map_err(refused)?.send(&mut stream);
        let stream = stream::iter([Ok(Bytes::from(stream))]);
        return Ok(FilesAnswer::Sent(Box::pin(stream)));
    };
    let destination = root.destination(path).map_err(refused)?;
    let mut stream = Vec::new();
    while let Some(Ok(piece)) = incoming.next().await {
        stream.extend_from_slice(&piece);
    }
    let received = destination.receive(&*stream, Attributes::Full);
    let received = received.map_err(refused)?;
    Ok(FilesAnswer::Received {
        entries: received.entries,
        bytes: received.bytes,
        skipped: received.skipped,
    })
}
