//! What a shim does with agents that don't behave.

use std::{
    io::{Read as _, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
};

use rubelet_shim::{
    client::{CallError, Client},
    protocol::{
        self, Call, CallResult, Decoder, FailureKind, FromAgent, FromShim, Hello, Request, VERSION,
    },
    spawn, wire,
};

use crate::fixture::{PATIENCE, Recipe, Shim, open_files, wait_until};

fn embedded(name: &str) -> Shim {
    let mut shim = Shim::start(name, protocol::RuntimeChoice::Embedded);
    shim.make_sandbox();
    shim
}

fn connect(shim: &Shim) -> UnixStream {
    let socket = spawn::connect(shim.path()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// All that a shim says until it closes the connection.
fn remaining_messages(mut socket: UnixStream) -> Vec<FromShim> {
    let mut decoder = Decoder::new();
    let mut bytes = Vec::new();
    // A connection that is closed with unread bytes in it ends with an error.
    let _ = socket.read_to_end(&mut bytes);
    decoder.push(&bytes);
    let mut words = Vec::new();
    while let Some(frame) = decoder.next_frame().unwrap() {
        words.extend(protocol::from_shim(&frame.body).unwrap());
    }
    words
}

fn hello() -> Vec<u8> {
    let hello = Hello {
        version: VERSION,
        subscribe: false,
        pid: 0,
    };
    protocol::encode(&FromAgent::Hello(hello), 0).unwrap()
}

fn request(call: Call, fds: usize) -> Vec<u8> {
    protocol::encode(&FromAgent::Request(Request { id: 9, call }), fds).unwrap()
}

#[test]
fn malformed_messages_close_only_their_connection() {
    let mut shim = embedded("malformed");
    let head = |fds: u8, length: u32| [&b"RbS"[..], &[fds], &length.to_le_bytes()].concat();
    for malformed in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100_000],
        head(0, u32::MAX),
        head(200, 2),
        [head(0, 3), b"{}}".to_vec()].concat(),
        // A call before the hello.
        request(Call::State, 0),
        // Descriptors that don't come.
        [hello(), request(Call::State, 2)].concat(),
    ] {
        let mut socket = connect(&shim);
        // It may be closed before all is written.
        let _ = socket.write_all(&malformed);
        let words = remaining_messages(socket);
        assert!(
            matches!(words.last(), Some(FromShim::Goodbye { .. })) || words.is_empty(),
            "{words:?}"
        );
        shim.state();
    }
    // One that is closed in the middle of a message.
    let mut socket = connect(&shim);
    socket.write_all(&hello()[..10]).unwrap();
    drop(socket);
    shim.state();
}

#[test]
fn unknown_calls_are_refused_and_unknown_messages_skipped() {
    let mut shim = embedded("release");
    let socket = connect(&shim);
    let send = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let bytes = protocol::encode(&value, 0).unwrap();
        (&socket).write_all(&bytes).unwrap();
    };
    send(r#"{"hello":{"version":77,"subscribe":false,"mood":"good"}}"#);
    send(r#"{"telegram":{"text":"stop"}}"#);
    send(r#"{"request":{"id":5,"call":{"fly":{"id":"c"}}}}"#);
    send(r#"{"request":{"id":6,"call":{"start":{"id":"c","speed":"high"}}}}"#);
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let words = remaining_messages(socket);
    let FromShim::Hello(hello) = &words[0] else {
        panic!("{words:?}");
    };
    assert_eq!((hello.version, hello.pid), (VERSION, shim.pid));
    let kinds: Vec<_> = words[1..]
        .iter()
        .map(|word| match word {
            FromShim::Reply {
                id,
                outcome: CallResult::Failure(failure),
            } => (*id, failure.kind),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [(5, FailureKind::Unsupported), (6, FailureKind::NotFound)]
    );
    shim.state();
}

#[test]
fn unexpected_descriptors_are_closed() {
    let mut shim = embedded("fds");
    let before = open_files(&shim).len();
    for _ in 0..20 {
        let socket = connect(&shim);
        wire::send(&socket, &hello(), &[]).unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        wire::send(&socket, &request(Call::State, 1), &[null.as_fd()]).unwrap();
        wire::send(&socket, b"R", &[null.as_fd(), null.as_fd()]).unwrap();
    }
    shim.state();
    wait_until("closed descriptors", || open_files(&shim).len() <= before);
}

#[test]
fn an_agent_that_reads_nothing_is_disconnected() {
    let mut shim = embedded("deaf");
    let socket = connect(&shim);
    let mut deaf = Client::new(socket, false, PATIENCE).unwrap();
    for number in 0..50 {
        shim.create(&number.to_string(), "true", Recipe::default());
    }
    let mut broken = false;
    for _ in 0..100_000 {
        if deaf.request(Call::State, &[]).is_err() {
            broken = true;
            break;
        }
    }
    assert!(broken, "it was not cut off");
    assert_eq!(shim.state().containers.len(), 50);
}

#[test]
fn the_latest_subscriber_has_the_events_and_others_may_look() {
    let mut shim = embedded("subscriber");
    shim.run("c", "sleep 1000", Recipe::default());
    let mut first = Client::new(connect(&shim), true, PATIENCE).unwrap();
    shim.reconnect();
    let mut looks: Vec<Client> = (0..20)
        .map(|_| Client::new(connect(&shim), false, PATIENCE).unwrap())
        .collect();
    shim.delete("c");
    assert_eq!(shim.exit("c").signal, Some(9));
    // Those that came first had to go, the subscriber never.
    assert!(looks[0].call(Call::State, &[]).is_err());
    assert!(looks[19].call(Call::State, &[]).is_ok());
    assert!(matches!(first.event(), Err(CallError::Io(_))));
}
