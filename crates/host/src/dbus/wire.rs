//! D-Bus marshalling: little-endian, each value aligned to its size from the start of the message.
//! (A body starts at a multiple of eight, so it can be written on its own.)

/// A property value, which is sent with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Number64(u64),
    Text(String),
    Bytes(Vec<u8>),
    Numbers32(Vec<u32>),
    Pairs(Vec<(String, String)>),
}

impl Value {
    fn signature(&self) -> &'static str {
        match self {
            Self::Bool(_) => "b",
            Self::Number64(_) => "t",
            Self::Text(_) => "s",
            Self::Bytes(_) => "ay",
            Self::Numbers32(_) => "au",
            Self::Pairs(_) => "a(ss)",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn number(&mut self, number: u32) {
        self.align(4);
        self.bytes.extend(number.to_le_bytes());
    }

    pub(crate) fn number64(&mut self, number: u64) {
        self.align(8);
        self.bytes.extend(number.to_le_bytes());
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.number(value.into());
    }

    /// A string or an object path, which are encoded alike.
    pub(crate) fn text(&mut self, text: &str) {
        self.number(length(text.len()));
        self.bytes.extend(text.as_bytes());
        self.byte(0);
    }

    pub(crate) fn signature(&mut self, signature: &str) {
        self.byte(u8::try_from(signature.len()).expect("signatures are written in this module"));
        self.bytes.extend(signature.as_bytes());
        self.byte(0);
    }

    /// An array, whose length in bytes does not include the padding before the first element.
    pub(crate) fn array(&mut self, alignment: usize, fill: impl FnOnce(&mut Self)) {
        self.number(0);
        let at = self.bytes.len() - 4;
        self.align(alignment);
        let start = self.bytes.len();
        fill(self);
        let filled = length(self.bytes.len() - start);
        self.bytes[at..at + 4].copy_from_slice(&filled.to_le_bytes());
    }

    pub(crate) fn properties(&mut self, properties: &[(&str, Value)]) {
        self.array(8, |array| {
            for (name, value) in properties {
                array.align(8);
                array.text(name);
                array.signature(value.signature());
                array.value(value);
            }
        });
    }

    /// The last argument of `StartTransientUnit`, of type `a(sa(sv))`.
    pub(crate) fn no_auxiliary_units(&mut self) {
        self.array(8, |_| {});
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Bool(value) => self.bool(*value),
            Value::Number64(number) => self.number64(*number),
            Value::Text(text) => self.text(text),
            Value::Bytes(bytes) => self.array(1, |array| array.bytes.extend(bytes)),
            Value::Numbers32(numbers) => self.array(4, |array| {
                for number in numbers {
                    array.number(*number);
                }
            }),
            Value::Pairs(pairs) => self.array(8, |array| {
                for (first, second) in pairs {
                    array.align(8);
                    array.text(first);
                    array.text(second);
                }
            }),
        }
    }
}

/// No sent message comes near the 64 MiB that the format allows.
fn length(length: usize) -> u32 {
    u32::try_from(length).expect("messages are far smaller than 4 GiB")
}

/// Reads a complete message; every access is bounds-checked.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn align(&mut self, to: usize) -> Option<()> {
        self.at = self.at.next_multiple_of(to);
        (self.at <= self.bytes.len()).then_some(())
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        Some(*self.take(1)?.first()?)
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        self.align(4)?;
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn number64(&mut self) -> Option<u64> {
        self.align(8)?;
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let text = self.take(length)?;
        self.take(1)?;
        std::str::from_utf8(text).ok()
    }

    pub(crate) fn signature(&mut self) -> Option<&'a str> {
        let length = usize::from(self.byte()?);
        let text = self.take(length)?;
        self.take(1)?;
        std::str::from_utf8(text).ok()
    }
}
