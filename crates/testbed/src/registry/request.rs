//! Parses one request.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// A client's request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path without the query.
    pub(super) path: String,
    /// The query.
    pub(super) query: String,
    /// Headers by lower-case names.
    pub(super) fields: BTreeMap<String, String>,
}

impl Request {
    /// Reads it; `None` if the client tried HTTPS and was rejected.
    pub(super) fn read(mut stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut input = BufReader::new(stream);
        if input.fill_buf()?.first() == Some(&TLS_HANDSHAKE) {
            // A client that tries HTTPS first learns from this that there is only HTTP. Its data is
            // read, because closing a connection with unread bytes discards the response.
            let mut record = [0; 5];
            input.read_exact(&mut record)?;
            let length = u16::from_be_bytes([record[3], record[4]]);
            io::copy(&mut input.take(length.into()), &mut io::sink())?;
            write!(
                stream,
                "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
            )?;
            return Ok(None);
        }
        let mut head = input.lines();
        let first = head.next().transpose()?.unwrap_or_default();
        let mut words = first.split(' ').map(str::to_owned);
        let mut request = Self {
            method: words.next().unwrap_or_default(),
            ..Self::default()
        };
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        (request.path, request.query) = (path.to_owned(), query.to_owned());
        for line in head {
            let line = line?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let value = value.trim().to_owned();
            request.fields.insert(name.to_ascii_lowercase(), value);
        }
        Ok(Some(request))
    }

    /// The value of a header.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// The first requested byte, if it is a range request.
    pub(super) fn range_start(&self) -> Option<usize> {
        let range = self.field("range")?.strip_prefix("bytes=")?;
        range.split('-').next()?.parse().ok()
    }
}
