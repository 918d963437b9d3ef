//! Servers that do what a test says.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_api::probe::{HttpGet, TargetPort};
use rubelet_probes::{ProbeReport, Prober};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

/// Long enough for everything that is to succeed.
pub(crate) const PLENTY: Duration = Duration::from_secs(10);
/// How long tests wait for what never comes.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// A server, gone when this is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Each connection is handled by `serve`, on this address.
    pub(crate) async fn on<F>(
        address: &str,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> std::io::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await?;
        let port = listener.local_addr()?.port();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream));
            }
        });
        Ok(Self {
            port,
            seen: Arc::default(),
            task: task.abort_handle(),
        })
    }

    /// Each connection is handled by `serve`.
    pub(crate) async fn new<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::on("127.0.0.1:0", serve).await.expect("a free port")
    }

    /// Answers each request with what `answer` makes of its head, and closes.
    pub(crate) async fn answering(
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let (answer, record) = (Arc::new(answer), Arc::clone(&seen));
        let mut server = Self::new(move |stream| {
            let (answer, record) = (Arc::clone(&answer), Arc::clone(&record));
            async move {
                answer_one(stream, |head| {
                    record.lock().push(head.to_owned());
                    answer(head)
                })
                .await;
            }
        })
        .await;
        server.seen = seen;
        server
    }

    /// Answers each request with this text, and closes.
    pub(crate) async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::answering(move |_| answer.clone()).await
    }

    /// The heads of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    /// An httpGet probe of this server.
    pub(crate) fn get(&self, path: &str) -> HttpGet {
        HttpGet {
            host: None,
            port: TargetPort::Number(self.port),
            path: path.into(),
            https: false,
            headers: Vec::new(),
        }
    }

    /// One httpGet probe.
    pub(crate) async fn probe(&self, path: &str, timeout: Duration) -> ProbeReport {
        prober().http(&self.get(path), "127.0.0.1", timeout).await
    }
}

pub(crate) fn prober() -> Prober {
    Prober::new("1.36")
}

/// Reads the head of a request, answers and closes, over any transport.
pub(crate) async fn answer_one<S>(mut stream: S, answer: impl FnOnce(&str) -> Vec<u8>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let _ = stream
        .write_all(&answer(&String::from_utf8_lossy(&head)))
        .await;
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

/// A plain answer with a body.
pub(crate) fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A port where nobody listens, for as long as the socket lives.
pub(crate) fn closed_port() -> (u16, tokio::net::TcpSocket) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(any).expect("a free port");
    let port = socket.local_addr().expect("an address").port();
    (port, socket)
}

/// A listener whose queue of connections is full: nobody gets an answer to a SYN.
pub(crate) async fn deaf_port() -> (u16, TcpListener, JoinSet<()>) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(any).expect("a free port");
    let listener = socket.listen(0).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut waiting = JoinSet::new();
    // The queue holds one; the others wait in vain.
    for _ in 0..4 {
        waiting.spawn(async move {
            let stream = TcpStream::connect(address).await;
            std::future::pending::<()>().await;
            drop(stream);
        });
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    (address.port(), listener, waiting)
}
