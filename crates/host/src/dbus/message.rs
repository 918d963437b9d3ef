//! D-Bus messages: outgoing calls, incoming replies and signals.

use super::wire::{Reader, Writer};

/// The object that a method is called on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Name of the service on the bus.
    pub(crate) destination: &'static str,
    /// The object.
    pub(crate) path: &'static str,
    /// The interface.
    pub(crate) interface: &'static str,
}

/// The bus itself.
pub(crate) const BUS: Target = Target {
    destination: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
};

/// systemd's manager of units.
pub(crate) const SYSTEMD: Target = Target {
    destination: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};

/// A method call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) method: &'static str,
    signature: &'static str,
    body: Vec<u8>,
}

impl Call {
    pub(crate) fn new(
        target: Target,
        method: &'static str,
        signature: &'static str,
        body: Writer,
    ) -> Self {
        Self {
            target,
            method,
            signature,
            body: body.bytes,
        }
    }

    /// The message with a serial number.
    pub(crate) fn encode(&self, serial: u32, bus: bool) -> Vec<u8> {
        let mut message = Writer::default();
        // Little-endian, a call, no flags, version of the format.
        for byte in [b'l', KIND_CALL, 0, 1] {
            message.byte(byte);
        }
        message.number(u32::try_from(self.body.len()).expect("calls are small"));
        message.number(serial);
        let texts = [
            (FIELD_PATH, "o", self.target.path),
            (FIELD_INTERFACE, "s", self.target.interface),
            (FIELD_MEMBER, "s", self.method),
            (FIELD_DESTINATION, "s", self.target.destination),
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

pub(crate) const KIND_CALL: u8 = 1;
pub(crate) const KIND_RETURN: u8 = 2;
pub(crate) const KIND_ERROR: u8 = 3;
pub(crate) const KIND_SIGNAL: u8 = 4;

pub(crate) const FIELD_PATH: u8 = 1;
pub(crate) const FIELD_INTERFACE: u8 = 2;
pub(crate) const FIELD_MEMBER: u8 = 3;
pub(crate) const FIELD_ERROR: u8 = 4;
pub(crate) const FIELD_REPLY_TO: u8 = 5;
pub(crate) const FIELD_DESTINATION: u8 = 6;
pub(crate) const FIELD_SENDER: u8 = 7;
pub(crate) const FIELD_SIGNATURE: u8 = 8;
pub(crate) const FIELD_UNIX_FDS: u8 = 9;

/// Size of the fixed header, which contains the length of the message.
pub(crate) const START: usize = 16;
/// Larger than any awaited message.
const MOST: usize = 1 << 20;

/// A received message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) incoming: Incoming,
    /// Number of file descriptors that come with it.
    pub(crate) fds: usize,
}

/// The contents of a received message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A reply to the call of that serial number.
    Reply(u32, Reply),
    /// A signal.
    Signal(Signal),
    /// Any other message.
    Other,
}

/// A reply to a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) body: Body,
    pub(crate) refusal: Option<Refusal>,
}

/// A signal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The sender's own name on the bus, such as `:1.5`, which the bus sets.
    pub(crate) sender: String,
    pub(crate) interface: String,
    pub(crate) member: String,
    pub(crate) body: Body,
}

/// The values of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) signature: String,
    bytes: Vec<u8>,
}

impl Body {
    /// The values, if they have these types.
    pub(crate) fn of(&self, signature: &str) -> Option<Reader<'_>> {
        (self.signature == signature).then(|| Reader::new(&self.bytes))
    }

    /// The first value, if it is a text or a path.
    pub(crate) fn first_text(&self) -> Option<&str> {
        match self.signature.chars().next() {
            Some('s' | 'o') => Reader::new(&self.bytes).text(),
            _ => None,
        }
    }
}

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) name: String,
    pub(crate) message: String,
}

impl Reply {
    pub(crate) fn error(&self) -> Option<&str> {
        self.refusal.as_ref().map(|refusal| refusal.name.as_str())
    }
}

/// Length of the whole message, from its first [`START`] bytes.
pub(crate) fn length(start: &[u8]) -> Result<usize, &'static str> {
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
pub(crate) fn decode(bytes: &[u8]) -> Result<Received, &'static str> {
    read(bytes).ok_or("it ends too early")
}

fn read(bytes: &[u8]) -> Option<Received> {
    let mut reader = Reader::new(bytes);
    reader.byte()?;
    let kind = reader.byte()?;
    reader.take(10)?;
    let fields = usize::try_from(reader.number()?).ok()?;
    let end = reader.at().checked_add(fields)?;
    let (mut signal, mut error, mut reply_to, mut fds) = (Signal::default(), "", 0, 0);
    while reader.at() < end {
        reader.align(8)?;
        let field = reader.byte()?;
        match (field, reader.signature()?) {
            (FIELD_INTERFACE, "s") => signal.interface = reader.text()?.to_owned(),
            (FIELD_MEMBER, "s") => signal.member = reader.text()?.to_owned(),
            (FIELD_SENDER, "s") => signal.sender = reader.text()?.to_owned(),
            (FIELD_ERROR, "s") => error = reader.text()?,
            (FIELD_REPLY_TO, "u") => reply_to = reader.number()?,
            (FIELD_UNIX_FDS, "u") => fds = usize::try_from(reader.number()?).ok()?,
            (FIELD_SIGNATURE, "g") => signal.body.signature = reader.signature()?.to_owned(),
            (_, "s" | "o") => drop(reader.text()?),
            (_, "g") => drop(reader.signature()?),
            (_, "u") => drop(reader.number()?),
            _ => return None,
        }
    }
    reader.align(8)?;
    signal.body.bytes = bytes.get(reader.at()..)?.to_vec();
    let first = signal.body.signature.chars().next();
    // A text that ends too early is an error, even if nobody reads it.
    let text = match first {
        Some('s' | 'o') => signal.body.first_text()?.to_owned(),
        _ => String::new(),
    };
    let incoming = match kind {
        KIND_RETURN => {
            let body = signal.body;
            let refusal = None;
            Incoming::Reply(reply_to, Reply { body, refusal })
        }
        KIND_ERROR => {
            let refusal = Some(Refusal {
                name: error.to_owned(),
                message: text,
            });
            let body = signal.body;
            Incoming::Reply(reply_to, Reply { body, refusal })
        }
        KIND_SIGNAL => Incoming::Signal(signal),
        _ => Incoming::Other,
    };
    Some(Received { incoming, fds })
}
