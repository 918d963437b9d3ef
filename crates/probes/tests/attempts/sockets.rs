//! What probes leave behind in the system: nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rubelet_api::probe::{GrpcCheck, HttpGet, TargetPort, TcpSocket};
use rubelet_probes::ProbeOutcome;
use rustls::version::TLS13;
use tokio_rustls::TlsAcceptor;

use crate::{
    grpc::Health,
    https,
    server::{PLENTY, Server, answer, answer_one, prober},
};

const PROBES: usize = 50;
/// The state of a closed connection that the system keeps for a minute.
const TIME_WAIT: &str = "06";
const LISTEN: &str = "0A";

/// The connections of a port, but for those that were there before: an earlier program may have had
/// the same number.
struct Connections {
    port: u16,
    before: BTreeSet<String>,
}

impl Connections {
    fn of(server: &Server) -> Self {
        let port = server.port;
        let before = table(port).into_keys().collect();
        Self { port, before }
    }

    /// How many are in TIME_WAIT, on whichever side, once all are closed.
    async fn in_time_wait(&self) -> usize {
        loop {
            let states: Vec<_> = table(self.port)
                .into_iter()
                .filter(|(ends, _)| !self.before.contains(ends))
                .map(|(_, state)| state)
                .collect();
            if states.iter().all(|state| state == TIME_WAIT) {
                return states.len();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The states of connections by both of their ends, one of which is this port.
fn table(port: u16) -> BTreeMap<String, String> {
    let end = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the table of connections");
    let rows = table.lines().skip(1);
    let rows = rows.map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[1].ends_with(&end) || row[2].ends_with(&end))
        .filter(|row| row[3] != LISTEN)
        .map(|row| (format!("{} {}", row[1], row[2]), row[3].to_owned()))
        .collect()
}

#[tokio::test]
async fn http_probes_leave_no_socket_behind() {
    for text in [
        answer("200 OK", "well"),
        b"HTTP/1.0 200 OK\r\n\r\nwell".to_vec(),
        answer("200 OK", &"x".repeat(100_000)),
    ] {
        let server = Server::saying(text).await;
        let connections = Connections::of(&server);
        for _ in 0..PROBES {
            let report = server.probe("/", PLENTY).await;
            assert_eq!(report.verdict, ProbeOutcome::Passed);
        }
        assert_eq!(connections.in_time_wait().await, 0);
    }
}

#[tokio::test]
async fn https_probes_leave_no_socket_behind() {
    for protocol in ["http/1.1", "h2"] {
        let acceptor = TlsAcceptor::from(Arc::new(https::config(&TLS13, &[protocol])));
        let server = Server::new(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let stream = acceptor.accept(stream).await.expect("a handshake");
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    return https::serve_http2(stream).await;
                }
                answer_one(stream, |_| answer("200 OK", "well")).await;
            }
        })
        .await;
        let connections = Connections::of(&server);
        let get = HttpGet {
            https: true,
            ..server.get("/")
        };
        let prober = prober();
        for _ in 0..10 {
            let report = prober.http(&get, "127.0.0.1", PLENTY).await;
            assert_eq!(report.verdict, ProbeOutcome::Passed);
        }
        assert_eq!(connections.in_time_wait().await, 0);
    }
}

#[tokio::test]
async fn tcp_probes_leave_no_socket_behind() {
    let server = Server::saying("").await;
    let connections = Connections::of(&server);
    let socket = TcpSocket {
        host: None,
        port: TargetPort::Number(server.port),
    };
    for _ in 0..PROBES {
        let report = prober().tcp(&socket, "127.0.0.1", PLENTY).await;
        assert_eq!(report.verdict, ProbeOutcome::Passed);
    }
    assert_eq!(connections.in_time_wait().await, 0);
}

#[tokio::test]
async fn grpc_probes_leave_no_socket_behind() {
    let server = Health::Status(1).serve().await;
    let connections = Connections::of(&server);
    let check = GrpcCheck {
        port: server.port,
        service: "".into(),
    };
    for _ in 0..PROBES {
        let report = prober().grpc(&check, "127.0.0.1", PLENTY).await;
        assert_eq!(report.verdict, ProbeOutcome::Passed);
    }
    assert_eq!(connections.in_time_wait().await, 0);
}

#[tokio::test]
async fn the_count_of_waiting_sockets_can_be_trusted() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Server::saying("x").await;
    let connections = Connections::of(&server);
    let mut client = tokio::net::TcpStream::connect(("127.0.0.1", server.port))
        .await
        .expect("a connection");
    client.write_all(b"\r\n\r\n").await.expect("a connection");
    client
        .read_to_end(&mut Vec::new())
        .await
        .expect("an answer");
    drop(client);
    assert_eq!(connections.in_time_wait().await, 1);
}

#[tokio::test]
async fn a_probe_that_is_dropped_closes_its_socket() {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::new(move |mut stream| {
        let sender = sender.clone();
        async move {
            use tokio::io::AsyncReadExt;
            let _ = sender.send("asked");
            let _ = stream.read_to_end(&mut Vec::new()).await;
            let _ = sender.send("closed");
        }
    })
    .await;
    let get = server.get("/");
    let attempt = tokio::spawn(async move { prober().http(&get, "127.0.0.1", PLENTY).await });
    assert_eq!(receiver.recv().await, Some("asked"));
    attempt.abort();
    assert_eq!(receiver.recv().await, Some("closed"));
}
