//! Exchanges of the second implementation, and ours as it reads them.

use std::fmt::Write as _;

use bytes::Bytes;

use super::{
    frame::{
        Control, HEAD, Head, ResetStatus, control, data, go_away, head, ping, reply, reset, syn,
    },
    header_block::{Deflater, Headers, Inflater},
};

const EXCHANGES: &str = include_str!("golden/exchanges.txt");

struct Exchange {
    writer: &'static str,
    name: &'static str,
    bytes: Vec<u8>,
    frames: &'static str,
}

fn exchanges() -> Vec<Exchange> {
    let mut lines = EXCHANGES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut all = Vec::new();
    while let Some(title) = lines.next() {
        let (writer, name) = title.split_once(' ').unwrap();
        let hex = lines.next().unwrap();
        let digits = (0..hex.len()).step_by(2);
        let bytes = digits.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        all.push(Exchange {
            writer,
            name,
            bytes: bytes.collect(),
            frames: lines.next().unwrap(),
        });
    }
    all
}

/// The frames in the words of the file.
fn frames(mut bytes: &[u8]) -> String {
    let mut inflater = Inflater::default();
    let mut all = Vec::new();
    while let Some((first, rest)) = bytes.split_first_chunk::<HEAD>() {
        let head = head(*first).unwrap();
        let (Head::Data { length, .. } | Head::Control { length, .. }) = head;
        let (body, rest) = rest.split_at(length);
        bytes = rest;
        all.push(match head {
            Head::Data { stream, fin, .. } => {
                let text = format!("data {stream}{} {}", end(fin), text(body));
                text.trim_end_matches(' ').to_owned()
            }
            Head::Control { kind, flags, .. } => {
                let mut headers = |block: &Bytes| {
                    let block = inflater.decompress(block).unwrap();
                    named(&Headers::decode(&block).unwrap())
                };
                match control(kind, flags, &Bytes::copy_from_slice(body)).unwrap() {
                    Control::Syn { stream, fin, block } => {
                        format!("syn {stream}{} {}", end(fin), headers(&block))
                    }
                    Control::Reply { stream, fin, block } => {
                        format!("reply {stream}{} {}", end(fin), headers(&block))
                    }
                    Control::Headers { stream, fin, block } => {
                        format!("headers {stream}{} {}", end(fin), headers(&block))
                    }
                    Control::Reset { stream } => format!("reset {stream}"),
                    Control::Ping(number) => format!("ping {number}"),
                    Control::GoAway => "goaway".to_owned(),
                    Control::Ignored => "ignored".to_owned(),
                }
            }
        });
    }
    assert!(bytes.is_empty());
    all.join("; ")
}

fn end(fin: bool) -> &'static str {
    if fin { " fin" } else { "" }
}

fn text(bytes: &[u8]) -> String {
    if bytes.len() > 40 {
        return format!("{} bytes", bytes.len());
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        match byte {
            b' '..=b'~' if *byte != b'\\' => text.push(char::from(*byte)),
            other => write!(text, "\\x{other:02x}").unwrap(),
        }
        text
    })
}

fn named(headers: &Headers) -> String {
    let all = headers.sorted().into_iter();
    let all: Vec<String> = all.map(|(name, value)| format!("{name}={value}")).collect();
    format!("{{{}}}", all.join(" "))
}

#[test]
fn what_another_implementation_writes_is_read_as_it_reads_it_itself() {
    let all = exchanges();
    assert!(all.iter().filter(|one| one.writer == "go").count() >= 30);
    for one in all {
        assert_eq!(
            frames(&one.bytes),
            one.frames,
            "{} {}",
            one.writer,
            one.name
        );
    }
}

/// Frames of this crate's client and server for the same purposes.
fn ours() -> [(&'static str, Vec<Bytes>); 6] {
    let headers = |pairs: &[(&str, &str)]| {
        let all = pairs.iter();
        all.fold(Headers::default(), |all, (name, value)| {
            all.with(name, *value)
        })
        .encode()
    };
    let kind = |kind| headers(&[("streamType", kind)]);
    let port = |kind| headers(&[("streamType", kind), ("port", "8080"), ("requestID", "0")]);
    let (mut exec, mut ports, mut replies) = <(Deflater, Deflater, Deflater)>::default();
    [
        (
            "exec client",
            vec![
                syn(1, false, &exec.compress(&kind("error"))),
                syn(3, false, &exec.compress(&kind("stdin"))),
                syn(5, false, &exec.compress(&kind("stdout"))),
                data(3, false, b"input"),
                data(3, true, b""),
            ],
        ),
        (
            "ports client",
            vec![
                syn(1, true, &ports.compress(&port("error"))),
                syn(3, false, &ports.compress(&port("data"))),
                data(3, false, b"GET / HTTP/1.0\r\n\r\n"),
            ],
        ),
        (
            "replies server",
            vec![
                reply(1, &replies.compress(&headers(&[]))),
                reply(3, &replies.compress(&headers(&[]))),
                data(3, false, b"hello\n"),
                data(3, true, b""),
                data(1, true, br#"{"metadata":{},"status":"Success"}"#),
            ],
        ),
        ("reset server", vec![reset(5, ResetStatus::RefusedStream)]),
        ("ping server", vec![ping(1), ping(3)]),
        ("goaway server", vec![go_away(7)]),
    ]
}

#[test]
fn what_is_written_are_the_bytes_that_the_other_implementation_has_read() {
    let all = exchanges();
    let known: Vec<_> = all.iter().filter(|one| one.writer == "ours").collect();
    for (name, written) in ours() {
        let written = written.concat();
        let known = known.iter().find(|one| one.name == name);
        let known = known.map_or(&[][..], |one| &one.bytes);
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut hex, byte| {
                write!(hex, "{byte:02x}").unwrap();
                hex
            })
        };
        assert_eq!(hex(&written), hex(known), "{name}");
    }
}
