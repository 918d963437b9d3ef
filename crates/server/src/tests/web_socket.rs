//! A client of WebSockets with channels, as small as a test needs it.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// What a request for a WebSocket has beside its first lines.
pub(crate) const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The answer to a request for a session, and the connection behind it.
pub(crate) struct WebSocket<S> {
    pub(crate) code: u16,
    pub(crate) head: String,
    stream: S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Asks for a session with that protocol.
    pub(crate) async fn open(mut stream: S, line: &str, protocol: &str, headers: &str) -> Self {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: node\r\n{UPGRADE}Sec-WebSocket-Protocol: {protocol}\r\n\
             {headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a complete head"));
        }
        let head = String::from_utf8(head).unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { code, head, stream }
    }

    /// What follows the head of a refusal.
    pub(crate) async fn body(mut self) -> String {
        let head = self.head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    /// Sends bytes on a channel.
    pub(crate) async fn send(&mut self, channel: u8, bytes: &[u8]) {
        let length = u8::try_from(bytes.len() + 1).unwrap();
        assert!(length < 126, "too long for a test");
        // The mask is zeros, which leaves everything as it is.
        let mut frame = vec![0x82, 0x80 | length, 0, 0, 0, 0, channel];
        frame.extend(bytes);
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The next frame that holds something: its kind, and its bytes. `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let kind = self.stream.read_u8().await.ok()? & 0x0f;
        let length = match self.stream.read_u8().await.ok()? {
            126 => self.stream.read_u16().await.ok()?.into(),
            127 => self.stream.read_u64().await.ok()?,
            short => short.into(),
        };
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut bytes).await.ok()?;
        Some((kind, bytes))
    }

    /// The next bytes on that channel.
    pub(crate) async fn receive(&mut self, channel: u8) -> String {
        loop {
            let (_, bytes) = self.frame().await.expect("the session has ended");
            if bytes.first() == Some(&channel) && bytes.len() > 1 {
                return String::from_utf8(bytes[1..].to_vec()).unwrap();
            }
        }
    }

    /// Sends a word to an echo and waits for it.
    pub(crate) async fn echo(&mut self, word: &str) {
        self.send(0, word.as_bytes()).await;
        assert_eq!(self.receive(1).await, word);
    }
}
