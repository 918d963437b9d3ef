//! Exchanges over WebSockets, byte by byte, as another implementation writes them.

use std::{fmt::Write as _, time::Duration};

use rubelet_cri::v1;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::{
    fixture::{Fixture, upgraded},
    websocket::headers,
};
use crate::StreamingRequest;

const EXCHANGES: &str = include_str!("golden/websocket.txt");
const PATIENCE: Duration = Duration::from_secs(60);

/// A client's close frame: 1000, masked.
const CLOSE: [u8; 8] = [0x88, 0x82, 0x37, 0xfa, 0x21, 0x3d, 0x34, 0x12];

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len() / 2).map(|at| 2 * at);
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    match hex {
        "-" => Vec::new(),
        _ => digits.map(byte).collect(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// `exec COMMAND`, `terminal COMMAND` or `ports PORT`.
fn request(asked: &str) -> StreamingRequest {
    let (kind, words) = asked.split_once(' ').unwrap();
    if kind == "ports" {
        return StreamingRequest::PortForward(v1::PortForwardRequest {
            pod_sandbox_id: "s".to_owned(),
            port: vec![words.parse().unwrap()],
        });
    }
    let tty = kind == "terminal";
    StreamingRequest::Exec(v1::ExecRequest {
        container_id: "c".to_owned(),
        cmd: words.split(' ').map(str::to_owned).collect(),
        stdin: true,
        stdout: true,
        stderr: !tty,
        tty,
    })
}

#[tokio::test]
async fn exchanges_over_websockets_have_the_bytes_of_another_implementation() {
    let lines = EXCHANGES.lines();
    let lines: Vec<&str> = lines
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    let (exchanges, _) = lines.as_chunks::<4>();
    assert!(exchanges.len() >= 20);
    let fixture = Fixture::new();
    for [title, client, server, frames] in exchanges {
        let (protocol, asked) = title.split_once(' ').unwrap();
        let url = fixture.server.url_for(request(asked)).await.unwrap();
        let protocol = if protocol == "-" { "" } else { protocol };
        let (mut io, _) = upgraded(&url, headers(protocol)).await;
        // A command may have ended by itself.
        let _ = io.write_all(&bytes(client)).await;
        let mut answer = vec![0; bytes(server).len()];
        let read = timeout(PATIENCE, io.read_exact(&mut answer)).await;
        let read = read.unwrap_or_else(|_| panic!("{title}: the answer is too short: {frames}"));
        read.unwrap_or_else(|error| panic!("{title}: {error}: {frames}"));
        assert_eq!(hex(&answer), **server, "{title}: {frames}");
        let _ = io.write_all(&CLOSE).await;
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, io.read_to_end(&mut rest)).await;
        read.unwrap_or_else(|_| panic!("{title}: the server does not close the connection"))
            .unwrap();
    }
}
