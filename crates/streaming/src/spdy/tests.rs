//! Golden bytes, hostile frames, and two ends of a connection.

use std::{io::Read as _, time::Duration};

use bytes::Bytes;
use flate2::read::ZlibDecoder;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::{
    connection::{Connection, Limits},
    dictionary::dictionary,
    frame::{
        Control, FrameError, Head, ResetStatus, control, data, go_away, head, ping, reset, syn,
    },
    handle::Role,
    header_block::{Deflater, HeaderError, Headers, Inflater, LONGEST_BLOCK},
};
use crate::{Sink as _, Source as _, io::duplex};

const LIMITS: Limits = Limits {
    streams: 8,
    idle: Duration::ZERO,
};

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn frames_have_the_bytes_of_the_specification() {
    for (frame, expected) in [
        (data(1, false, b"hi"), "00000001000000026869"),
        (data(3, true, b""), "0000000301000000"),
        (ping(7), "800300060000000400000007"),
        (go_away(5), "80030007000000080000000500000000"),
        (
            reset(9, ResetStatus::RefusedStream),
            "80030003000000080000000900000003",
        ),
        (syn(1, true, b"x"), "800300010100000b0000000100000000000078"),
    ] {
        assert_eq!(text(&frame), expected);
    }
}

#[test]
fn frames_that_make_no_sense_are_errors() {
    let of = |bytes: [u8; 8]| head(bytes).unwrap_err();
    assert_eq!(of([0x80, 2, 0, 1, 0, 0, 0, 0]), FrameError::Version);
    assert_eq!(
        of(*b"\x80\x03\0\x01\0\xff\xff\xff"),
        FrameError::TooLong(0xff_ffff)
    );
    for (kind, length) in [(1, 9), (2, 3), (3, 4), (6, 5), (7, 4), (8, 0)] {
        let body = Bytes::from(vec![0; length]);
        let read = control(kind, 0, &body);
        assert_eq!(read, Err(FrameError::Malformed), "{kind}");
    }
    let ignored = control(4, 0, &Bytes::from_static(b"settings"));
    assert_eq!(ignored, Ok(Control::Ignored));
    let data = head([0, 0, 0, 5, 1, 0, 1, 0]);
    let expected = Head::Data {
        stream: 5,
        fin: true,
        length: 256,
    };
    assert_eq!(data, Ok(expected));
}

fn some_headers() -> Headers {
    Headers::default()
        .with("streamType", "error")
        .with("port", "8080")
        .with("requestID", "0")
}

/// zlib itself, with one decompressor for the whole connection, is the second implementation.
#[test]
fn blocks_are_read_by_a_usual_decompressor() {
    let mut deflater = Deflater::default();
    let stream: Vec<u8> = (0..3)
        .flat_map(|_| deflater.compress(&some_headers().encode()))
        .collect();
    let mut usual = flate2::Decompress::new(true);
    let mut block = Vec::with_capacity(4096);
    let needs = usual.decompress_vec(&stream, &mut block, flate2::FlushDecompress::Sync);
    assert!(needs.unwrap_err().needs_dictionary().is_some());
    usual.set_dictionary(&dictionary()).unwrap();
    let rest = &stream[usual.total_in() as usize..];
    usual
        .decompress_vec(rest, &mut block, flate2::FlushDecompress::Sync)
        .unwrap();
    assert_eq!(block, some_headers().encode().repeat(3));
}

/// And zlib's compressor, which refers to the dictionary and to earlier blocks.
#[test]
fn blocks_of_a_usual_compressor_are_read() {
    let mut usual = flate2::Compress::new(flate2::Compression::best(), true);
    usual.set_dictionary(&dictionary()).unwrap();
    let mut inflater = Inflater::default();
    for round in 0..50 {
        let headers = some_headers()
            .with("round", round.to_string())
            .with("accept-encoding", "gzip,deflate,sdch");
        let mut block = Vec::with_capacity(4096);
        usual
            .compress_vec(&headers.encode(), &mut block, flate2::FlushCompress::Sync)
            .unwrap();
        assert!(round == 0 || block.len() < 60, "{}", block.len());
        let read = Headers::decode(&inflater.decompress(&block).unwrap());
        assert_eq!(read, Ok(headers), "{round}");
    }
}

#[test]
fn a_header_bomb_is_not_unpacked() {
    let mut usual = flate2::Compress::new(flate2::Compression::best(), true);
    usual.set_dictionary(&dictionary()).unwrap();
    let mut bomb = Vec::with_capacity(1 << 20);
    usual
        .compress_vec(&vec![0; 64 << 20], &mut bomb, flate2::FlushCompress::Sync)
        .unwrap();
    assert!(bomb.len() <= 2 * LONGEST_BLOCK);
    assert_eq!(
        Inflater::default().decompress(&bomb),
        Err(HeaderError::TooLong)
    );
}

#[test]
fn blocks_that_make_no_sense_are_errors() {
    for stream in [
        &b""[..],
        b"\x78",
        b"\x78\x9d\0\0\0\xff\xff",
        b"\x78\x20abcd\0\0\0\xff\xff",
        b"\x78\x9c\x07",
    ] {
        let read = Inflater::default().decompress(stream);
        assert_eq!(read, Err(HeaderError::Compression), "{stream:?}");
    }
    let block = |name: &str| Headers::default().with("a", "b").with(name, "").encode();
    assert_eq!(Headers::decode(&block("a")), Err(HeaderError::Malformed));
    assert_eq!(Headers::decode(&block("")), Err(HeaderError::Malformed));
    assert_eq!(Headers::decode(b"\0\0\x10\0"), Err(HeaderError::TooLong));
    assert_eq!(
        Headers::decode(b"\0\0\0\x01\xff\xff\xff\xffab"),
        Err(HeaderError::Malformed)
    );
    let mut upper = block("b");
    upper[8] = b'A';
    assert_eq!(Headers::decode(&upper), Err(HeaderError::Malformed));
}

proptest! {
    #[test]
    fn no_block_makes_a_decoder_panic(stream in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut inflater = Inflater::default();
        if let Ok(block) = inflater.decompress(&stream) {
            let _ = Headers::decode(&block);
        }
        let _ = Headers::decode(&stream);
    }

    #[test]
    fn headers_come_back(values in prop::collection::btree_map("[a-z]{1,9}", "[ -~]{0,40}", 0..9)) {
        let mut headers = Headers::default();
        for (name, value) in values {
            headers = headers.with(&name, value);
        }
        let (mut deflater, mut inflater) = (Deflater::default(), Inflater::default());
        for _ in 0..2 {
            let block = inflater.decompress(&deflater.compress(&headers.encode()));
            prop_assert_eq!(Headers::decode(&block.unwrap()), Ok(headers.clone()));
        }
    }
}

fn ends() -> (Connection, Connection) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let client = Connection::start(duplex(ours), Role::Client, LIMITS);
    let server = Connection::start(duplex(theirs), Role::Server, LIMITS);
    (client, server)
}

#[tokio::test]
async fn a_stream_carries_both_directions_and_half_closes() {
    let (client, mut server) = ends();
    let mut ours = client.handle.open(some_headers()).unwrap();
    let mut theirs = server.next().await.unwrap();
    assert_eq!((theirs.id, &theirs.headers), (1, &some_headers()));
    theirs.accept().unwrap();
    let long = Bytes::from(vec![42; 300_000]);
    let sent = long.clone();
    let sending = async {
        ours.sink.write(sent).await.unwrap();
        ours.sink.close().await.unwrap();
    };
    let reading = async {
        let mut read = Vec::new();
        while let Some(bytes) = theirs.source.read().await.unwrap() {
            read.extend_from_slice(&bytes);
        }
        read
    };
    let ((), read) = tokio::join!(sending, reading);
    assert_eq!(read, long);
    theirs.sink.write("answer".into()).await.unwrap();
    theirs.sink.close().await.unwrap();
    assert_eq!(ours.source.read().await.unwrap().unwrap(), "answer");
    assert_eq!(ours.source.read().await.unwrap(), None);
}

#[tokio::test]
async fn a_reset_stream_and_a_lost_connection_are_errors() {
    let (client, mut server) = ends();
    let mut first = client.handle.open(some_headers()).unwrap();
    let second = client.handle.open(some_headers()).unwrap();
    server
        .next()
        .await
        .unwrap()
        .reset(ResetStatus::RefusedStream);
    let error = first.source.read().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(first.sink.write("x".into()).await.is_err());
    let kept = server.next().await.unwrap();
    drop((kept, server));
    let mut source = second.source;
    let error = source.read().await.unwrap_err();
    assert!(matches!(
        error.kind(),
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset
    ));
    client.handle.ended().await;
}

#[tokio::test]
async fn too_many_streams_are_refused_one_by_one() {
    let (client, mut server) = ends();
    let kept: Vec<_> = (0..8)
        .map(|_| client.handle.open(some_headers()).unwrap())
        .collect();
    assert!(
        client.handle.open(some_headers()).is_err(),
        "the client knows its own limit"
    );
    for _ in 0..8 {
        server.next().await.unwrap().accept().unwrap();
    }
    drop(kept);
    // Both ends forget streams that are gone on both.
    let again = client.handle.open(some_headers()).unwrap();
    let theirs = server.next().await.unwrap();
    assert_eq!(theirs.id, again.id);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends() {
    let (ours, theirs) = tokio::io::duplex(1024);
    let limits = Limits {
        idle: Duration::from_secs(60),
        ..LIMITS
    };
    let server = Connection::start(duplex(theirs), Role::Server, limits);
    let begun = tokio::time::Instant::now();
    assert_eq!(server.handle.idle().await, Duration::from_secs(60));
    assert_eq!(begun.elapsed().as_secs(), 60);
    // What serves it had five seconds to say so.
    server.handle.ended().await;
    assert_eq!(begun.elapsed().as_secs(), 65);
    drop(ours);
}

async fn server_of(bytes: &[u8]) -> (Connection, DuplexStream) {
    let (mut ours, theirs) = tokio::io::duplex(1 << 20);
    let server = Connection::start(duplex(theirs), Role::Server, LIMITS);
    ours.write_all(bytes).await.unwrap();
    (server, ours)
}

fn opening(id: u32) -> Vec<u8> {
    syn(
        id,
        false,
        &Deflater::default().compress(&some_headers().encode()),
    )
    .to_vec()
}

#[tokio::test]
async fn what_breaks_the_protocol_ends_the_connection() {
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
            .to_vec()
            .repeat(1 << 10),
        [0x80, 3, 0, 1, 0, 0, 0, 1, 0].to_vec(),
        opening(2),
        [opening(3), opening(3)].concat(),
        syn(1, false, b"rubbish").to_vec(),
        [&opening(5)[..], &syn(1, false, &[0, 0, 0, 0xff, 0xff])].concat(),
    ] {
        let (server, mut ours) = server_of(&bytes).await;
        if bytes[0] == b'G' {
            // Which is read as data of a stream that is not open.
            ours.shutdown().await.unwrap();
        }
        server.handle.ended().await;
    }
}

#[tokio::test]
async fn a_ping_is_answered_and_a_flood_of_them_ends_the_connection() {
    let (_server, mut ours) = server_of(&[&ping(1)[..], &ping(2)].concat()).await;
    let mut answer = [0; 12];
    ours.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..], ping(1)[..], "2 is an answer");
    // The other end takes 1 MiB before it stops to read; it never does.
    let flood = ping(3).repeat(200_000);
    let (server, _ours) = {
        let (mut ours, theirs) = tokio::io::duplex(4096);
        let server = Connection::start(duplex(theirs), Role::Server, LIMITS);
        let _ = tokio::time::timeout(Duration::from_secs(5), ours.write_all(&flood)).await;
        (server, ours)
    };
    server.handle.ended().await;
}

#[tokio::test]
async fn data_of_a_stream_that_nobody_opened_is_answered_with_a_reset() {
    let (_server, mut ours) = server_of(&data(7, false, b"lost")).await;
    let mut answer = [0; 16];
    ours.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..], reset(7, ResetStatus::InvalidStream)[..]);
}

#[tokio::test]
async fn a_closed_connection_says_all_before_its_end() {
    let (client, mut server) = ends();
    let mut ours = client.handle.open(some_headers()).unwrap();
    let mut theirs = server.next().await.unwrap();
    theirs.accept().unwrap();
    let saying = async {
        theirs
            .sink
            .write(Bytes::from(vec![1; 200_000]))
            .await
            .unwrap();
        theirs.sink.close().await.unwrap();
        server.close().await;
    };
    let hearing = async {
        let mut heard = 0;
        while let Some(bytes) = ours.source.read().await.unwrap() {
            heard += bytes.len();
        }
        heard
    };
    let ((), heard) = tokio::join!(saying, hearing);
    assert_eq!(heard, 200_000);
}

#[test]
fn the_usual_reader_of_whole_streams_agrees() {
    // Without a dictionary, as a foreign peer might begin.
    let stored = [
        &[0x78, 0x01][..],
        &Deflater::begun().compress(&some_headers().encode()),
    ]
    .concat();
    let mut block = Vec::new();
    let _ = ZlibDecoder::new(&stored[..]).read_to_end(&mut block);
    assert_eq!(block, some_headers().encode());
    assert_eq!(Inflater::default().decompress(&stored), Ok(block));
}
