//! A small HTTP/1.1 client for one request at a time, over a unix socket or TCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Timeout of a silent server.
const SILENCE: Duration = Duration::from_secs(60);

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code, such as 200.
    pub status: u16,
    /// The body, complete.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// GET of `path` from the server behind the unix socket `socket`.
///
/// # Errors
/// There is no server, it is silent for half a minute, or its response is not HTTP.
pub fn get_unix(socket: &Path, path: &str) -> Result<Response> {
    request(connect(socket)?, "localhost", "GET", path, None)
}

/// A request with a body, such as a PATCH, to the server behind the unix socket `socket`.
///
/// # Errors
/// As [`get_unix`].
pub fn send_unix(
    socket: &Path,
    method: &str,
    path: &str,
    content_type: &str,
    body: &str,
) -> Result<Response> {
    let content = Some((content_type, body));
    request(connect(socket)?, "localhost", method, path, content)
}

/// One request on an existing connection, optionally with a body and its type.
pub(crate) fn request(
    stream: impl Read + Write,
    host: &str,
    method: &str,
    path: &str,
    content: Option<(&str, &str)>,
) -> Result<Response> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    if let Some((content_type, body)) = content {
        let length = body.len();
        text += &format!("Content-Type: {content_type}\r\nContent-Length: {length}\r\n");
    }
    text += "\r\n";
    text += content.map_or("", |(_, body)| body);
    ask(stream, &format!("{method} {path}"), &text)
}

fn connect(socket: &Path) -> Result<UnixStream> {
    let stream = UnixStream::connect(socket)
        .with_context(|| format!("cannot connect to {}", socket.display()))?;
    stream.set_read_timeout(Some(SILENCE))?;
    Ok(stream)
}

/// GET of `path` from the server at `address`, a host and port.
///
/// # Errors
/// As [`get_unix`].
pub fn get_tcp(address: &str, path: &str) -> Result<Response> {
    let stream =
        TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(SILENCE))?;
    request(stream, address, "GET", path, None)
}

fn ask(mut stream: impl Read + Write, what: &str, request: &str) -> Result<Response> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .with_context(|| format!("no complete response to {what}"))?;
    parse(&answer).with_context(|| format!("invalid response to {what}"))
}

fn parse(answer: &[u8]) -> Result<Response> {
    let end = find(answer, b"\r\n\r\n").context("the headers of the response are incomplete")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let body = &answer[end + 4..];
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1)?.parse().ok())
        .with_context(|| format!("`{status_line}` is not an HTTP status line"))?;
    let header = |name: &str| {
        head.split("\r\n").skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    let chunked = header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
    let body = match header("content-length") {
        _ if chunked => join_chunks(body)?,
        Some(length) => {
            let length: usize = length.parse().context("Content-Length is not a number")?;
            body.get(..length)
                .context("the body is shorter than Content-Length says")?
                .to_vec()
        }
        None => body.to_vec(),
    };
    Ok(Response { status, body })
}

fn join_chunks(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = find(rest, b"\r\n").context("a chunk has no size")?;
        let size = String::from_utf8_lossy(&rest[..end]);
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).context("a chunk's size is not a number")?;
        if size == 0 {
            return Ok(body);
        }
        let data = &rest[end + 2..];
        let Some(chunk) = data.get(..size) else {
            bail!("the last chunk is truncated")
        };
        body.extend_from_slice(chunk);
        rest = data.get(size + 2..).context("a chunk does not end")?;
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_end_by_length_chunks_or_connection_close() {
        for (answer, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1;x\r\ni\r\n0\r\n\r\n",
                "hi",
            ),
            ("HTTP/1.0 200 OK\r\n\r\nhi", "hi"),
        ] {
            let response = parse(answer.as_bytes()).unwrap();
            assert_eq!(
                (response.status, response.text().as_str()),
                (200, body),
                "{answer}"
            );
        }
    }

    #[test]
    fn a_truncated_response_is_an_error() {
        for answer in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi",
        ] {
            assert!(parse(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}
