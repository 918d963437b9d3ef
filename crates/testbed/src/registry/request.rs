//! Reading one request.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// What a client wants.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path without what comes after a question mark.
    pub(super) path: String,
    /// What comes after it.
    pub(super) query: String,
    /// Fields by their names in small letters.
    pub(super) fields: BTreeMap<String, String>,
}

impl Request {
    /// Reads it; `None` when the client tried HTTPS and was told that there is none.
    pub(super) fn read(mut stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut input = BufReader::new(stream);
        if input.fill_buf()?.first() == Some(&TLS_HANDSHAKE) {
            // A client that tries HTTPS first understands by this that there is only HTTP. It is
            // heard out, for a connection that is closed with bytes unread loses the answer.
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

    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// The first byte that is wanted, if not all are.
    pub(super) fn range_start(&self) -> Option<usize> {
        let range = self.field("range")?.strip_prefix("bytes=")?;
        range.split('-').next()?.parse().ok()
    }
}
