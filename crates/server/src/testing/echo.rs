//! Sessions whose other end writes back what it reads.

use std::{io, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use rubelet_cri::{CriResult, v1};
use rubelet_streaming::{
    Duplex, PortDialer, RemoteProcess, SessionExit, SessionTarget, Sessions, Sink, Source,
};
use tokio::sync::{mpsc, oneshot};

use crate::{RunRequest, SessionAction, SessionError, SessionRequest};

/// What a fake node answers to requests for sessions, and what it was asked.
pub struct FakeSessions {
    /// What was asked for, oldest first.
    pub asked: Mutex<Vec<SessionRequest>>,
    /// Why there is no session.
    pub refusal: Mutex<Option<SessionError>>,
    /// How long a session may be idle.
    pub idle_timeout: Mutex<Duration>,
    /// The commands that were run, oldest first.
    pub ran: Mutex<Vec<RunRequest>>,
    /// What commands write.
    pub output: Mutex<Result<Bytes, SessionError>>,
    /// Closed when the echoes are over, one receiver for each.
    pub echoes: Arc<Echoes>,
}

impl Default for FakeSessions {
    fn default() -> Self {
        Self {
            asked: Mutex::default(),
            refusal: Mutex::default(),
            idle_timeout: Mutex::new(Duration::from_secs(4 * 3600)),
            ran: Mutex::default(),
            output: Mutex::new(Ok(Bytes::new())),
            echoes: Arc::default(),
        }
    }
}

impl FakeSessions {
    /// Answers a request for a session; `known` is whether there is such a pod.
    ///
    /// # Errors
    /// The pod is not known, or there is a `refusal`.
    pub fn session(
        &self,
        known: Result<(), SessionError>,
        request: &SessionRequest,
    ) -> Result<SessionTarget, SessionError> {
        self.asked.lock().push(request.clone());
        known?;
        if let Some(refusal) = self.refusal.lock().clone() {
            return Err(refusal);
        }
        let echoes = Arc::clone(&self.echoes) as Arc<dyn Sessions>;
        Ok(match &request.action {
            SessionAction::Exec {
                container,
                command,
                streams,
            } => SessionTarget::Exec(
                v1::ExecRequest {
                    container_id: container.clone(),
                    cmd: command.clone(),
                    tty: streams.tty,
                    stdin: streams.stdin,
                    stdout: streams.stdout,
                    stderr: streams.stderr,
                },
                echoes,
            ),
            SessionAction::Attach { container, streams } => SessionTarget::Attach(
                v1::AttachRequest {
                    container_id: container.clone(),
                    tty: streams.tty,
                    stdin: streams.stdin,
                    stdout: streams.stdout,
                    stderr: streams.stderr,
                },
                echoes,
            ),
            SessionAction::PortForward { ports } => SessionTarget::PortForward(
                v1::PortForwardRequest {
                    pod_sandbox_id: "sandbox".to_owned(),
                    port: ports.iter().copied().map(i32::from).collect(),
                },
                echoes,
            ),
        })
    }

    /// Answers a request to run a command; `known` is whether there is such a pod.
    ///
    /// # Errors
    /// The pod is not known, or the output is an error.
    pub fn run(
        &self,
        known: Result<(), SessionError>,
        request: &RunRequest,
    ) -> Result<Bytes, SessionError> {
        self.ran.lock().push(request.clone());
        known?;
        self.output.lock().clone()
    }
}

/// Processes that write back what they read, until their input ends.
#[derive(Default)]
pub struct Echoes;

struct Output(mpsc::Receiver<Bytes>);

struct Input {
    pipe: Option<mpsc::Sender<Bytes>>,
    ended: Option<oneshot::Sender<()>>,
}

#[async_trait]
impl Source for Output {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.0.recv().await)
    }
}

#[async_trait]
impl Sink for Input {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let pipe = self.pipe.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let sent = pipe.send(bytes).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.pipe = None;
        if let Some(ended) = self.ended.take() {
            // Nobody waits where the session has ended.
            let _ = ended.send(());
        }
        Ok(())
    }
}

fn pipe() -> (Input, Output, oneshot::Receiver<()>) {
    let (pipe, output) = mpsc::channel(4);
    let (ended, end) = oneshot::channel();
    let input = Input {
        pipe: Some(pipe),
        ended: Some(ended),
    };
    (input, Output(output), end)
}

fn process() -> RemoteProcess {
    let (stdin, stdout, end) = pipe();
    RemoteProcess {
        stdin: Some(Box::new(stdin)),
        stdout: Some(Box::new(stdout)),
        stderr: None,
        resize: None,
        exit: Box::pin(async move {
            // Also where the session drops it.
            let _ = end.await;
            Ok(SessionExit::Code(0))
        }),
    }
}

#[async_trait]
impl Sessions for Echoes {
    async fn exec(&self, _: v1::ExecRequest) -> CriResult<RemoteProcess> {
        Ok(process())
    }

    async fn attach(&self, _: v1::AttachRequest) -> CriResult<RemoteProcess> {
        Ok(process())
    }

    async fn port_forward(&self, _: &str) -> CriResult<Arc<dyn PortDialer>> {
        Ok(Arc::new(Self))
    }
}

#[async_trait]
impl PortDialer for Echoes {
    async fn dial(&self, _: u16) -> CriResult<Duplex> {
        let (sink, source, _) = pipe();
        Ok(Duplex {
            source: Box::new(source),
            sink: Box::new(sink),
        })
    }
}
