//! JSON from a program, decoded as in Go clients and a little more leniently: null, absent and
//! empty are the same, unknown fields are ignored, and only a field of the wrong type is dropped.
//!
//! Normally the text is decoded directly. Only after an error it is parsed into a value, decoded,
//! and decoded again without the failed field. Each dropped field is reported.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use crate::{
    decode::{self, Rules},
    path::{self, Step},
    wording::TypeError,
};

/// How many fields are dropped one by one. Beyond that their parents are dropped, and so on
/// upwards: the work is bounded however much of a large object is invalid.
const ONE_BY_ONE: usize = 8;

/// The result of decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received<T> {
    /// The value.
    pub value: T,
    /// The fields that could not be decoded, in the order of discovery. The value is the same as if
    /// they were absent.
    pub left_out: Vec<SkippedField>,
}

/// A field that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedField {
    /// Its path, such as `status.images[0].names`. The indices do not count items of the same list
    /// that were dropped before.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for SkippedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Reads JSON.
///
/// # Errors
/// The text is not JSON, or too much of it does not fit `T`.
pub fn read_json<T: DeserializeOwned>(text: &[u8]) -> Result<Received<T>, serde_json::Error> {
    let error = match serde_json::from_slice(text) {
        Ok(value) => {
            return Ok(Received {
                value,
                left_out: Vec::new(),
            });
        }
        Err(error) => error,
    };
    let value: Result<Value, _> = match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        // As in Go.
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(text)),
    };
    read_value(&value.map_err(|_| error)?)
}

/// Decodes a parsed value.
///
/// # Errors
/// Too much of it is not what `T` needs.
pub fn read_value<T: DeserializeOwned>(value: &Value) -> Result<Received<T>, serde_json::Error> {
    let read = read(value, Rules::SentByNewer, |_| false);
    read.map(|(value, left_out, _)| Received { value, left_out })
        .map_err(serde_json::Error::custom)
}

/// The value, the dropped fields, and unknown fields.
type Read<T> = (T, Vec<SkippedField>, Vec<(Vec<Step>, String)>);

/// Decodes a value without its invalid parts. If a `needed` part is invalid, everything fails.
pub(crate) fn read<T: DeserializeOwned>(
    value: &Value,
    rules: Rules,
    needed: impl Fn(&str) -> bool,
) -> Result<Read<T>, SkippedField> {
    let mut left_out: Vec<SkippedField> = Vec::new();
    let mut rest = Cow::Borrowed(value);
    loop {
        let (result, findings) = decode::decode(&rest, &[], rules);
        let TypeError(mut problem) = match result {
            Ok(read) => return Ok((read, left_out, findings.unknown)),
            Err(error) => error,
        };
        // Advice for the author of a file; here the author is a program.
        if let Some(end) = problem.rfind("; put it in quotes") {
            problem.truncate(end);
        }
        let mut at = findings.failed_at.unwrap_or_default();
        let mut failed = SkippedField {
            field: path::format(&at),
            problem,
        };
        if needed(&failed.field) {
            return Err(failed);
        }
        let above = left_out.len() / ONE_BY_ONE;
        at.truncate(at.len().saturating_sub(above));
        failed.field = path::format(&at);
        if needed(&failed.field) || !remove(rest.to_mut(), &at) {
            return Err(failed);
        }
        left_out.push(failed);
    }
}

/// Removes a part of a value; false if there is no such part.
fn remove(value: &mut Value, at: &[Step]) -> bool {
    let Some((last, above)) = at.split_last() else {
        return false;
    };
    let mut value = value;
    for step in above {
        let next = match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    match (last, value) {
        (Step::Key(key), Value::Object(fields)) => fields.remove(key).is_some(),
        (Step::Index(index), Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
