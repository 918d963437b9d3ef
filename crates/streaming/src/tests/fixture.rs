//! A runtime that echoes, behind a streaming server.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, client::conn::http1, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rubelet_cri::{CriError, CriErrorKind, CriResult, v1};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
};

use crate::{
    Duplex, PortDialer, RemoteProcess, SessionExit, Sessions, Sink, Source, StreamingRequest,
    StreamingServer, TerminalSize,
};

/// A runtime: `cat` and `cat-err` copy their input, `exit N` exits, `sizes` says each size of its
/// terminal, `sleep` does nothing, `many N` writes N bytes; others are not found.
#[derive(Default)]
pub(super) struct Echo {
    pub(super) ended: Arc<Mutex<Vec<String>>>,
}

/// One end of a pipe in memory.
struct Pipe(mpsc::Receiver<Bytes>);
struct PipeEnd(Option<mpsc::Sender<Bytes>>);

fn pipe() -> (Box<dyn Sink>, Box<dyn Source>) {
    let (sender, receiver) = mpsc::channel(4);
    (Box::new(PipeEnd(Some(sender))), Box::new(Pipe(receiver)))
}

#[async_trait]
impl Source for Pipe {
    async fn read(&mut self) -> std::io::Result<Option<Bytes>> {
        Ok(self.0.recv().await)
    }
}

#[async_trait]
impl Sink for PipeEnd {
    async fn write(&mut self, bytes: Bytes) -> std::io::Result<()> {
        let sender = self.0.as_ref().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let sent = sender.send(bytes).await;
        sent.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.0 = None;
        Ok(())
    }
}

/// Notes when a session is dropped.
struct Noted(Arc<Mutex<Vec<String>>>, String);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.lock().push(std::mem::take(&mut self.1));
    }
}

impl Echo {
    fn process(&self, command: &[String], asked: (bool, bool, bool)) -> CriResult<RemoteProcess> {
        let (to_stdin, mut stdin) = pipe();
        let (mut to_stdout, stdout) = pipe();
        let (mut to_stderr, stderr) = pipe();
        let (sizes, mut sized) = watch::channel(TerminalSize::default());
        let words: Vec<String> = command.to_vec();
        let noted = Noted(Arc::clone(&self.ended), words.join(" "));
        let name = words.first().map_or("", String::as_str);
        if !matches!(
            name,
            "cat" | "cat-err" | "exit" | "sizes" | "sleep" | "many"
        ) {
            let text = format!("{name}: executable file not found in $PATH");
            return Err(CriError::new("Exec", CriErrorKind::NotFound, text));
        }
        let running = tokio::spawn(async move {
            let number = words.get(1).and_then(|text| text.parse().ok()).unwrap_or(0);
            match &*words[0] {
                "cat" => {
                    while let Ok(Some(bytes)) = stdin.read().await {
                        if to_stdout.write(bytes).await.is_err() {
                            break;
                        }
                    }
                }
                "cat-err" => {
                    while let Ok(Some(bytes)) = stdin.read().await {
                        if to_stderr.write(bytes).await.is_err() {
                            break;
                        }
                    }
                }
                "sizes" => {
                    while sized.changed().await.is_ok() {
                        let size = *sized.borrow_and_update();
                        let text = format!("{}x{};", size.width, size.height);
                        if size.width == 0 || to_stdout.write(text.into()).await.is_err() {
                            break;
                        }
                    }
                }
                "many" => {
                    let mut left = number as usize;
                    while left > 0 {
                        let piece = left.min(65536);
                        left -= piece;
                        if to_stdout.write(vec![b'm'; piece].into()).await.is_err() {
                            break;
                        }
                    }
                    return 0;
                }
                "sleep" => {
                    // As a pipe without a writer; ends with the session.
                    let _ = to_stdout.write("begun".into()).await;
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
            number
        });
        let running = AbortOnDrop(running);
        let exit = async move {
            let mut running = running;
            let code = (&mut running.0).await.unwrap_or(255);
            drop(noted);
            Ok(SessionExit::Code(code))
        };
        Ok(RemoteProcess {
            stdin: asked.0.then_some(to_stdin),
            stdout: asked.1.then_some(stdout),
            stderr: asked.2.then_some(stderr),
            resize: Some(Arc::new(move |size| {
                sizes.send_replace(size);
            })),
            exit: Box::pin(exit),
        })
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<i32>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Sessions for Echo {
    async fn exec(&self, request: v1::ExecRequest) -> CriResult<RemoteProcess> {
        let asked = (request.stdin, request.stdout, request.stderr);
        self.process(&request.cmd, asked)
    }

    async fn attach(&self, request: v1::AttachRequest) -> CriResult<RemoteProcess> {
        let asked = (request.stdin, request.stdout, request.stderr);
        self.process(&["cat".to_owned()], asked)
    }

    async fn port_forward(&self, sandbox: &str) -> CriResult<Arc<dyn PortDialer>> {
        if sandbox.is_empty() {
            let kind = CriErrorKind::NotFound;
            return Err(CriError::new("PortForward", kind, "no such sandbox"));
        }
        Ok(Arc::new(EchoPorts))
    }
}

/// Every port but 1 echoes.
struct EchoPorts;

#[async_trait]
impl PortDialer for EchoPorts {
    async fn dial(&self, port: u16) -> CriResult<Duplex> {
        if port == 1 {
            let kind = CriErrorKind::Unavailable;
            return Err(CriError::new("PortForward", kind, "connection refused"));
        }
        let (sink, source) = pipe();
        Ok(Duplex { source, sink })
    }
}

/// A server and its runtime.
pub(super) struct Fixture {
    pub(super) server: Arc<StreamingServer>,
    pub(super) echo: Arc<Echo>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let echo = Arc::new(Echo::default());
        let weak = Arc::downgrade(&(Arc::clone(&echo) as Arc<dyn Sessions>));
        let server = StreamingServer::new(weak as Weak<dyn Sessions>);
        Self { server, echo }
    }

    pub(super) async fn exec_url(&self, command: &str, tty: bool) -> String {
        let request = v1::ExecRequest {
            container_id: "c".to_owned(),
            cmd: command.split(' ').map(str::to_owned).collect(),
            stdin: true,
            stdout: true,
            stderr: !tty,
            tty,
        };
        self.server
            .url_for(StreamingRequest::Exec(request))
            .await
            .unwrap()
    }

    pub(super) async fn ports_url(&self, ports: &[i32]) -> String {
        self.ports_url_of("s", ports).await
    }

    pub(super) async fn ports_url_of(&self, sandbox: &str, ports: &[i32]) -> String {
        let request = v1::PortForwardRequest {
            pod_sandbox_id: sandbox.to_owned(),
            port: ports.to_vec(),
        };
        let request = StreamingRequest::PortForward(request);
        self.server.url_for(request).await.unwrap()
    }
}

/// Sends a request.
pub(super) async fn send(url: &str, headers: HeaderMap) -> Response<Incoming> {
    let (address, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    send_over(stream, &format!("/{path}"), headers).await
}

async fn send_over(stream: TcpStream, path: &str, headers: HeaderMap) -> Response<Incoming> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::post(path)
        .header(header::HOST, "node")
        .body(Empty::<Bytes>::new())
        .unwrap();
    request.headers_mut().extend(headers);
    sender.send_request(request).await.unwrap()
}

/// Sends a request that is answered with an upgrade.
pub(super) async fn upgraded(url: &str, headers: HeaderMap) -> (TokioIo<Upgraded>, HeaderMap) {
    upgrade_of(send(url, headers).await).await
}

/// As [`upgraded`], over a connection.
pub(super) async fn upgraded_over(
    stream: TcpStream,
    path: &str,
    headers: HeaderMap,
) -> (TokioIo<Upgraded>, HeaderMap) {
    upgrade_of(send_over(stream, path, headers).await).await
}

async fn upgrade_of(response: Response<Incoming>) -> (TokioIo<Upgraded>, HeaderMap) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let code = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        panic!("{code}: {}", String::from_utf8_lossy(&body));
    }
    let answer = response.headers().clone();
    // "close" beside it would be an error to Go's clients.
    assert_eq!(answer.get(header::CONNECTION).unwrap(), "Upgrade");
    let io = hyper::upgrade::on(response).await.unwrap();
    (TokioIo::new(io), answer)
}
