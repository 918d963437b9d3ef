//! Hand-written HTTP, for requests that no library sends, and for streamed responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// A response with its headers.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl RawResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }
}

/// Sends a request with this first line and these headers, and reads the complete response.
pub(crate) fn request(socket: &Path, line: &str, headers: &[&str]) -> RawResponse {
    let mut stream = Stream::open(socket, line, headers);
    let mut body = String::new();
    while let Some(piece) = stream.piece() {
        body.push_str(&piece);
    }
    let Stream {
        status, headers, ..
    } = stream;
    RawResponse {
        status,
        headers,
        body,
    }
}

/// A streamed response.
pub(crate) struct Stream {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<UnixStream>,
    chunked: bool,
    ended: bool,
    rest: String,
}

impl Stream {
    /// Sends a request and reads the headers of the response.
    pub(crate) fn open(socket: &Path, line: &str, headers: &[&str]) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut text = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        for header in headers {
            text.push_str(&format!("{header}\r\n"));
        }
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut read_line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status_line = read_line();
        let status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = read_line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        Self {
            status,
            headers,
            reader,
            chunked,
            ended: false,
            rest: String::new(),
        }
    }

    /// The next chunk of the body; `None` at its end.
    fn piece(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let mut bytes = Vec::new();
        if self.chunked {
            let mut size = String::new();
            self.reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            bytes.resize(size + 2, 0);
            self.reader.read_exact(&mut bytes).unwrap();
            bytes.truncate(size);
        } else {
            self.reader.read_to_end(&mut bytes).unwrap();
            self.ended = true;
        }
        self.ended |= bytes.is_empty();
        (!bytes.is_empty()).then(|| String::from_utf8(bytes).unwrap())
    }

    /// The next line of JSON, such as an event of a watch; `None` at the end.
    pub(crate) fn json_line(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.rest.split_once('\n') {
                let value = serde_json::from_str(line).unwrap();
                self.rest = rest.to_owned();
                return Some(value);
            }
            let piece = self.piece()?;
            self.rest.push_str(&piece);
        }
    }
}
