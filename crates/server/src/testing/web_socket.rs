//! A client of WebSockets with channels, as small as a test needs it.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// What a request for a WebSocket has beside its first lines.
pub const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The answer to a request for a session, and the connection behind it.
pub struct WebSocket<S> {
    /// The status code.
    pub code: u16,
    /// The head of the answer.
    pub head: String,
    stream: S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Asks for a session with that protocol.
    pub async fn open(mut stream: S, line: &str, protocol: &str, headers: &str) -> Self {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: node\r\n{UPGRADE}Sec-WebSocket-Protocol: {protocol}\r\n\
             {headers}\r\n"
        );
        stream
            .write_all(request.as_bytes())
            .await
            .expect("the server reads");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a complete head"));
        }
        let head = String::from_utf8(head).expect("a head is text");
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.expect("a head begins with a status line");
        Self { code, head, stream }
    }

    /// What follows the head of a refusal.
    pub async fn body(mut self) -> String {
        let head = self.head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let length = length.expect("a refusal has a length");
        let mut body = vec![0; length];
        self.stream
            .read_exact(&mut body)
            .await
            .expect("a complete body");
        String::from_utf8(body).expect("a refusal is text")
    }

    /// Sends bytes on a channel.
    pub async fn send(&mut self, channel: u8, bytes: &[u8]) {
        let length = u8::try_from(bytes.len() + 1).expect("a short frame");
        assert!(length < 126, "too long for a test");
        // The mask is zeros, which leaves everything as it is.
        let mut frame = vec![0x82, 0x80 | length, 0, 0, 0, 0, channel];
        frame.extend(bytes);
        self.stream
            .write_all(&frame)
            .await
            .expect("the server reads");
    }

    /// The next frame that holds something: its kind, and its bytes. `None` at the end.
    pub async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let kind = self.stream.read_u8().await.ok()? & 0x0f;
        let length = match self.stream.read_u8().await.ok()? {
            126 => self.stream.read_u16().await.ok()?.into(),
            127 => self.stream.read_u64().await.ok()?,
            short => short.into(),
        };
        let mut bytes = vec![0; usize::try_from(length).expect("64 bits")];
        self.stream.read_exact(&mut bytes).await.ok()?;
        Some((kind, bytes))
    }

    /// The next bytes on that channel.
    pub async fn receive(&mut self, channel: u8) -> String {
        loop {
            let (_, bytes) = self.frame().await.expect("the session has ended");
            if bytes.first() == Some(&channel) && bytes.len() > 1 {
                return String::from_utf8(bytes[1..].to_vec()).expect("the echo is text");
            }
        }
    }

    /// Sends a word to an echo and waits for it.
    pub async fn echo(&mut self, word: &str) {
        self.send(0, word.as_bytes()).await;
        assert_eq!(self.receive(1).await, word);
    }
}
