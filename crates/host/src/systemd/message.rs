//! D-Bus messages: outgoing calls, incoming replies and signals.

use super::{
    MANAGER,
    wire::{Reader, Writer},
};

/// A method call, to systemd's manager by default.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) path: &'static str,
    pub(super) interface: &'static str,
    pub(super) destination: &'static str,
    method: &'static str,
    signature: &'static str,
    body: Vec<u8>,
}

impl Call {
    pub(super) fn new(method: &'static str, signature: &'static str, body: Writer) -> Self {
        Self {
            path: "/org/freedesktop/systemd1",
            interface: MANAGER,
            destination: "org.freedesktop.systemd1",
            method,
            signature,
            body: body.bytes,
        }
    }

    /// A call to the bus itself.
    pub(super) fn of_bus(method: &'static str, signature: &'static str, body: Writer) -> Self {
        Self {
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            destination: "org.freedesktop.DBus",
            ..Self::new(method, signature, body)
        }
    }

    /// The message with a serial number.
    pub(super) fn encode(&self, serial: u32, bus: bool) -> Vec<u8> {
        let mut message = Writer::default();
        // Little-endian, a call, no flags, version of the format.
        for byte in [b'l', KIND_CALL, 0, 1] {
            message.byte(byte);
        }
        message.number(u32::try_from(self.body.len()).expect("calls are small"));
        message.number(serial);
        let texts = [
            (FIELD_PATH, "o", self.path),
            (FIELD_INTERFACE, "s", self.interface),
            (FIELD_MEMBER, "s", self.method),
            (FIELD_DESTINATION, "s", self.destination),
        ];
        message.array(8, |array| {
            for (field, kind, text) in texts {
                // Without a bus there is no destination to name.
                if field == FIELD_DESTINATION && !bus {
                    continue;
                }
                array.align(8);
                array.byte(field);
                array.signature(kind);
                array.text(text);
            }
            if !self.signature.is_empty() {
                array.align(8);
                array.byte(FIELD_SIGNATURE);
                array.signature("g");
                array.signature(self.signature);
            }
        });
        message.align(8);
        message.bytes.extend(&self.body);
        message.bytes
    }
}

const KIND_CALL: u8 = 1;
const KIND_RETURN: u8 = 2;
const KIND_ERROR: u8 = 3;
const KIND_SIGNAL: u8 = 4;

const FIELD_PATH: u8 = 1;
const FIELD_INTERFACE: u8 = 2;
const FIELD_MEMBER: u8 = 3;
const FIELD_ERROR: u8 = 4;
const FIELD_REPLY_TO: u8 = 5;
const FIELD_DESTINATION: u8 = 6;
const FIELD_SIGNATURE: u8 = 8;

/// Size of the fixed header, which contains the length of the message.
pub(super) const START: usize = 16;
/// Larger than any awaited message of systemd.
const MOST: usize = 1 << 20;

/// A received message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A reply to the call of that serial number.
    Reply(u32, Reply),
    /// A job of systemd has ended.
    JobRemoved { job: String, result: String },
    /// Any other message.
    Other,
}

/// A reply to a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// The first value, if it is a text or a path.
    pub(super) first_text: String,
    pub(super) refusal: Option<Refusal>,
}

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) name: String,
    pub(super) message: String,
}

impl Reply {
    pub(super) fn error(&self) -> Option<&str> {
        self.refusal.as_ref().map(|refusal| refusal.name.as_str())
    }
}

/// Length of the whole message, from its first [`START`] bytes.
pub(super) fn length(start: &[u8]) -> Result<usize, &'static str> {
    let mut reader = Reader::new(start);
    let endian = reader.byte();
    if endian != Some(b'l') {
        return Err("it is not written in little-endian order");
    }
    let length = || {
        reader.take(3)?;
        let body = usize::try_from(reader.number()?).ok()?;
        reader.number()?;
        let fields = usize::try_from(reader.number()?).ok()?;
        START
            .checked_add(fields)?
            .checked_next_multiple_of(8)?
            .checked_add(body)
    };
    match { length }() {
        Some(length) if length <= MOST => Ok(length),
        _ => Err("it is too long"),
    }
}

/// Reads a whole message.
pub(super) fn decode(bytes: &[u8]) -> Result<Incoming, &'static str> {
    read(bytes).ok_or("it ends too early")
}

fn read(bytes: &[u8]) -> Option<Incoming> {
    let mut reader = Reader::new(bytes);
    reader.byte()?;
    let kind = reader.byte()?;
    reader.take(10)?;
    let fields = usize::try_from(reader.number()?).ok()?;
    let end = reader.at().checked_add(fields)?;
    let (mut member, mut error, mut reply_to, mut signature) = ("", "", 0, "");
    while reader.at() < end {
        reader.align(8)?;
        let field = reader.byte()?;
        match (field, reader.signature()?) {
            (FIELD_MEMBER, "s") => member = reader.text()?,
            (FIELD_ERROR, "s") => error = reader.text()?,
            (FIELD_REPLY_TO, "u") => reply_to = reader.number()?,
            (FIELD_SIGNATURE, "g") => signature = reader.signature()?,
            (_, "s" | "o") => drop(reader.text()?),
            (_, "g") => drop(reader.signature()?),
            (_, "u") => drop(reader.number()?),
            _ => return None,
        }
    }
    reader.align(8)?;
    let first_text = |reader: &mut Reader<'_>| match signature.chars().next() {
        Some('s' | 'o') => Some(reader.text()?.to_owned()),
        _ => Some(String::new()),
    };
    Some(match kind {
        KIND_RETURN => {
            let first_text = first_text(&mut reader)?;
            Incoming::Reply(
                reply_to,
                Reply {
                    first_text,
                    refusal: None,
                },
            )
        }
        KIND_ERROR => {
            let refusal = Refusal {
                name: error.to_owned(),
                message: first_text(&mut reader)?,
            };
            let refusal = Some(refusal);
            Incoming::Reply(
                reply_to,
                Reply {
                    refusal,
                    ..Reply::default()
                },
            )
        }
        // Number, path, unit, result.
        KIND_SIGNAL if member == "JobRemoved" && signature == "uoss" => {
            reader.number()?;
            let job = reader.text()?.to_owned();
            reader.text()?;
            let result = reader.text()?.to_owned();
            Incoming::JobRemoved { job, result }
        }
        _ => Incoming::Other,
    })
}
