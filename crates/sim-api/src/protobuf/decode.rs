//! Decodes protobuf to JSON.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::{
    schema::{self, Field, Message, Shape, Type},
    wire::{Wire, next},
};
use crate::{base64, clock};

/// Decodes the fields that are in the schema. Empty strings and times are omitted, as in JSON.
pub(super) fn object(message: &Message, mut bytes: &[u8]) -> Option<Value> {
    let mut object = Map::new();
    while !bytes.is_empty() {
        let (number, wire) = next(&mut bytes)?;
        let Some(field) = message.iter().find(|field| field.number == number) else {
            continue;
        };
        let found = match field.shape {
            Shape::Map => entry(field, &wire)?,
            _ => value(&field.kind, &wire)?,
        };
        let (Some(name), Some(found)) = (field.name, &found) else {
            // The fields belong to the object itself.
            if let (None, Some(Value::Object(fields))) = (field.name, found) {
                object.extend(fields);
            }
            continue;
        };
        let found = found.clone();
        match (field.shape, object.get_mut(name)) {
            (Shape::One, _) if found == "" => {}
            (Shape::One, _) => {
                object.insert(name.to_owned(), found);
            }
            (Shape::List, Some(Value::Array(all))) => all.push(found),
            (Shape::List, _) => {
                object.insert(name.to_owned(), Value::Array(vec![found]));
            }
            (Shape::Map, Some(Value::Object(all))) => {
                all.extend(found.as_object().cloned().unwrap_or_default());
            }
            (Shape::Map, _) => {
                object.insert(name.to_owned(), found);
            }
        }
    }
    Some(Value::Object(object))
}

/// The value, if there is one; fails if it is invalid.
fn value(kind: &Type, wire: &Wire<'_>) -> Option<Option<Value>> {
    Some(match (kind, wire) {
        (Type::Number, Wire::Number(number)) => Some(number.cast_signed().into()),
        (Type::Flag, Wire::Number(number)) => Some((*number != 0).into()),
        (Type::Text, Wire::Bytes(bytes)) => Some(text(bytes)?.into()),
        (Type::Bytes, Wire::Bytes(bytes)) => Some(base64::encode(bytes).into()),
        (Type::Time | Type::MicroTime, Wire::Bytes(bytes)) => time(kind, bytes)?.map(Value::String),
        (Type::Quantity, Wire::Bytes(bytes)) => {
            let found = part(bytes, 1)?;
            Some(match found {
                Some(Wire::Bytes(bytes)) => text(bytes)?.into(),
                _ => "0".into(),
            })
        }
        (Type::IntOrString, Wire::Bytes(bytes)) => Some(int_or_string(bytes)?),
        (Type::Json, Wire::Bytes(bytes)) => match part(bytes, 1)? {
            Some(Wire::Bytes(bytes)) => Some(serde_json::from_slice(bytes).ok()?),
            _ => None,
        },
        (Type::Texts, Wire::Bytes(bytes)) => {
            let mut rest = *bytes;
            let mut texts = Vec::new();
            while !rest.is_empty() {
                if let (1, Wire::Bytes(bytes)) = next(&mut rest)? {
                    texts.push(Value::String(text(bytes)?));
                }
            }
            Some(Value::Array(texts))
        }
        (Type::Message(name), Wire::Bytes(bytes)) => Some(object(schema::message(name)?, bytes)?),
        _ => None,
    })
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// The last value of a field.
fn part(mut bytes: &[u8], number: u64) -> Option<Option<Wire<'_>>> {
    let mut found = None;
    while !bytes.is_empty() {
        let (field, wire) = next(&mut bytes)?;
        if field == number {
            found = Some(wire);
        }
    }
    Some(found)
}

fn number(bytes: &[u8], field: u64) -> Option<i64> {
    Some(match part(bytes, field)? {
        Some(Wire::Number(number)) => number.cast_signed(),
        _ => 0,
    })
}

fn int_or_string(bytes: &[u8]) -> Option<Value> {
    if number(bytes, 1)? == 0 {
        return Some(number(bytes, 2)?.into());
    }
    Some(match part(bytes, 3)? {
        Some(Wire::Bytes(bytes)) => text(bytes)?.into(),
        _ => "".into(),
    })
}

fn time(kind: &Type, bytes: &[u8]) -> Option<Option<String>> {
    let (seconds, nanos) = (number(bytes, 1)?, number(bytes, 2)?);
    let time = Timestamp::from_second(seconds)
        .ok()
        .and_then(|time| time.checked_add(SignedDuration::from_nanos(nanos)).ok());
    // Go's zero time means none, and so does a message without fields.
    let time = time.filter(|time| *time > Timestamp::UNIX_EPOCH);
    Some(time.map(|time| match kind {
        Type::MicroTime => clock::micros(time),
        _ => clock::seconds(time),
    }))
}

/// One entry of a map: its key is field 1, its value field 2.
fn entry(field: &Field, wire: &Wire<'_>) -> Option<Option<Value>> {
    let Wire::Bytes(bytes) = wire else {
        return Some(None);
    };
    let key = match part(bytes, 1)? {
        Some(Wire::Bytes(key)) => text(key)?,
        _ => String::new(),
    };
    let found = match part(bytes, 2)? {
        Some(wire) => value(&field.kind, &wire)?,
        None => None,
    };
    let mut map = Map::new();
    map.insert(key, found.unwrap_or_else(|| "".into()));
    Some(Some(Value::Object(map)))
}
