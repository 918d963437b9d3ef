//! A stand-in for logind and its bus, on a socket of a test.

use std::{
    io::{self, BufRead, BufReader, IoSlice, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    pipe::{PipeFlags, pipe_with},
};

use super::LOGIND;
use crate::dbus::{
    message::{
        BUS, FIELD_ERROR, FIELD_INTERFACE, FIELD_MEMBER, FIELD_PATH, FIELD_REPLY_TO, FIELD_SENDER,
        FIELD_SIGNATURE, FIELD_UNIX_FDS, KIND_ERROR, KIND_RETURN, KIND_SIGNAL, START, length,
    },
    wire::{Reader, Writer},
};

/// The sender of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalSender {
    /// logind.
    Logind,
    /// Another process of the machine, which claims to be logind.
    Other,
}

/// A bus with a logind, until it is dropped.
#[derive(Debug)]
pub struct LogindPeer {
    state: Arc<Mutex<PeerState>>,
}

#[derive(Debug, Default)]
struct PeerState {
    /// True once the peer is dropped.
    ended: bool,
    connections: Vec<UnixStream>,
    is_shutting_down: bool,
    /// In microseconds.
    longest_delay: u64,
    /// What `longest_delay` becomes when the configuration is read.
    configured_delay: Option<u64>,
    /// The other ends of the locks that were given.
    locks: Vec<OwnedFd>,
    /// Method calls.
    calls: Vec<String>,
    /// Number of starts of logind.
    starts: u32,
    serial: u32,
}

impl PeerState {
    /// logind's own name on the bus.
    fn owner(&self) -> String {
        format!(":1.{}", self.starts)
    }
}

impl LogindPeer {
    /// Listens at this path. `longest_delay` is in seconds.
    ///
    /// # Errors
    /// As bind(2).
    pub fn start(socket: &Path, longest_delay: u64) -> io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        let state = Arc::new(Mutex::new(PeerState {
            longest_delay: longest_delay * 1_000_000,
            starts: 1,
            ..PeerState::default()
        }));
        let shared = Arc::clone(&state);
        // Ends with the process: nothing ends accept(2).
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let state = Arc::clone(&shared);
                if lock(&state).ended {
                    return;
                }
                // A client that breaks the protocol is disconnected.
                thread::spawn(move || drop(serve(&stream, &state)));
            }
        });
        Ok(Self { state })
    }

    /// Number of locks that are held.
    #[must_use]
    pub fn locks(&self) -> usize {
        let mut state = lock(&self.state);
        state.locks.retain(|other_end| {
            let mut fds = [PollFd::new(other_end, PollFlags::IN)];
            let polled = poll(&mut fds, Some(&rustix::time::Timespec::default()));
            polled.is_ok() && !fds[0].revents().contains(PollFlags::HUP)
        });
        state.locks.len()
    }

    /// The methods that were called so far.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        lock(&self.state).calls.clone()
    }

    /// Has the next reload of the configuration set the longest delay, in seconds.
    pub fn configure(&self, longest_delay: u64) {
        lock(&self.state).configured_delay = Some(longest_delay * 1_000_000);
    }

    /// Begins a shutdown, or cancels it. `from` sends the signal.
    pub fn announce(&self, begins: bool, from: SignalSender) {
        let mut state = lock(&self.state);
        let sender = match from {
            SignalSender::Logind => {
                state.is_shutting_down = begins;
                state.owner()
            }
            SignalSender::Other => ":1.999".to_owned(),
        };
        let mut body = Writer::default();
        body.bool(begins);
        let member = "PrepareForShutdown";
        send_signal(&mut state, &sender, LOGIND.interface, member, "b", &body);
    }

    /// Ends logind, and starts it again: a shutdown in progress is forgotten.
    pub fn restart(&self) {
        let mut state = lock(&self.state);
        let old = state.owner();
        state.starts += 1;
        state.is_shutting_down = false;
        let new = state.owner();
        for (before, after) in [(old.as_str(), ""), ("", new.as_str())] {
            let mut body = Writer::default();
            for text in [LOGIND.destination, before, after] {
                body.text(text);
            }
            let member = "NameOwnerChanged";
            let sender = BUS.destination;
            send_signal(&mut state, sender, BUS.interface, member, "sss", &body);
        }
    }

    /// Ends all connections, as a bus that is restarted.
    pub fn disconnect(&self) {
        for stream in lock(&self.state).connections.drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for LogindPeer {
    fn drop(&mut self) {
        lock(&self.state).ended = true;
        self.disconnect();
    }
}

fn lock(state: &Mutex<PeerState>) -> MutexGuard<'_, PeerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &UnixStream, state: &Mutex<PeerState>) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    for (begin, answer) in [
        ("\0AUTH EXTERNAL ", "OK 1234deadbeef\r\n"),
        ("NEGOTIATE_UNIX_FD", "AGREE_UNIX_FD\r\n"),
        ("BEGIN", ""),
    ] {
        line.clear();
        input.read_line(&mut line)?;
        if !line.starts_with(begin) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        (&*stream).write_all(answer.as_bytes())?;
    }
    lock(state).connections.push(stream.try_clone()?);
    loop {
        let mut message = vec![0; START];
        input.read_exact(&mut message)?;
        let length = length(&message).map_err(io::Error::other)?;
        message.resize(length, 0);
        input.read_exact(&mut message[START..])?;
        let call = read(&message).ok_or(io::ErrorKind::InvalidData)?;
        answer(stream, &mut lock(state), &call)?;
    }
}

/// A call that came.
struct Heard<'a> {
    serial: u32,
    method: &'a str,
    body: Reader<'a>,
}

fn read(message: &[u8]) -> Option<Heard<'_>> {
    let mut reader = Reader::new(message);
    reader.take(8)?;
    let serial = reader.number()?;
    let fields = usize::try_from(reader.number()?).ok()?;
    let end = reader.at().checked_add(fields)?;
    let mut method = "";
    while reader.at() < end {
        reader.align(8)?;
        let field = reader.byte()?;
        let text = match reader.signature()? {
            "g" => reader.signature()?,
            _ => reader.text()?,
        };
        if field == FIELD_MEMBER {
            method = text;
        }
    }
    reader.align(8)?;
    Some(Heard {
        serial,
        method,
        body: reader,
    })
}

fn answer(stream: &UnixStream, state: &mut PeerState, call: &Heard<'_>) -> io::Result<()> {
    state.calls.push(call.method.to_owned());
    let mut body = Writer::default();
    let mut lock = None;
    let signature = match call.method {
        "Hello" => {
            body.text(":1.42");
            "s"
        }
        "GetNameOwner" => {
            body.text(&state.owner());
            "s"
        }
        "Get" => {
            let mut reader = call.body.clone();
            let name = reader.text().and_then(|_| reader.text());
            if name == Some("PreparingForShutdown") {
                body.signature("b");
                body.bool(state.is_shutting_down);
            } else {
                body.signature("t");
                body.number64(state.longest_delay);
            }
            "v"
        }
        "Inhibit" if state.is_shutting_down => {
            body.text("The operation inhibition has been requested for is already running");
            let error = Some("org.freedesktop.login1.OperationInProgress");
            let message = encode_reply(state, call.serial, "s", error, false, &body);
            return (&*stream).write_all(&message);
        }
        "Inhibit" => {
            let (other_end, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
            state.locks.push(other_end);
            lock = Some(pipe);
            body.number(0);
            "h"
        }
        "KillUnit" => {
            if let Some(delay) = state.configured_delay {
                state.longest_delay = delay;
            }
            ""
        }
        _ => "",
    };
    let message = encode_reply(state, call.serial, signature, None, lock.is_some(), &body);
    match lock {
        None => (&*stream).write_all(&message),
        Some(pipe) => send_with(stream, &message, &pipe),
    }
}

fn send_with(stream: &UnixStream, message: &[u8], fd: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let data = [IoSlice::new(message)];
    let sent = sendmsg(stream, &data, &mut control, SendFlags::NOSIGNAL)?;
    let mut stream = stream;
    stream.write_all(&message[sent..])
}

fn send_signal(
    state: &mut PeerState,
    sender: &str,
    interface: &str,
    member: &str,
    signature: &str,
    body: &Writer,
) {
    let fields = [
        (FIELD_PATH, "o", LOGIND.path),
        (FIELD_INTERFACE, "s", interface),
        (FIELD_MEMBER, "s", member),
        (FIELD_SENDER, "s", sender),
        (FIELD_SIGNATURE, "g", signature),
    ];
    let message = encode(state, KIND_SIGNAL, &fields, &[], body);
    // One that is gone is removed.
    state
        .connections
        .retain(|stream| (&*stream).write_all(&message).is_ok());
}

fn encode_reply(
    state: &mut PeerState,
    to: u32,
    signature: &str,
    error: Option<&str>,
    with_fd: bool,
    body: &Writer,
) -> Vec<u8> {
    let owner = state.owner();
    let mut texts = vec![(FIELD_SENDER, "s", owner.as_str())];
    if !signature.is_empty() {
        texts.push((FIELD_SIGNATURE, "g", signature));
    }
    if let Some(error) = error {
        texts.push((FIELD_ERROR, "s", error));
    }
    let kind = match error {
        Some(_) => KIND_ERROR,
        None => KIND_RETURN,
    };
    let mut numbers = vec![(FIELD_REPLY_TO, to)];
    if with_fd {
        numbers.push((FIELD_UNIX_FDS, 1));
    }
    encode(state, kind, &texts, &numbers, body)
}

fn encode(
    state: &mut PeerState,
    kind: u8,
    texts: &[(u8, &str, &str)],
    numbers: &[(u8, u32)],
    body: &Writer,
) -> Vec<u8> {
    state.serial += 1;
    let mut message = Writer::default();
    for byte in [b'l', kind, 1, 1] {
        message.byte(byte);
    }
    message.number(u32::try_from(body.bytes.len()).expect("messages of the peer are small"));
    message.number(state.serial);
    message.array(8, |array| {
        for (field, signature, text) in texts {
            array.align(8);
            array.byte(*field);
            array.signature(signature);
            match *signature {
                "g" => array.signature(text),
                _ => array.text(text),
            }
        }
        for (field, number) in numbers {
            array.align(8);
            array.byte(*field);
            array.signature("u");
            array.number(*number);
        }
    });
    message.align(8);
    message.bytes.extend(&body.bytes);
    message.bytes
}
