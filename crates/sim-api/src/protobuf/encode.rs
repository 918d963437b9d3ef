//! Encodes JSON as protobuf.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    schema::{self, Field, Message, Shape, Type},
    wire::{put_bytes, put_number},
};
use crate::base64;

/// Encodes the fields that are in the schema, in the order of their numbers. Values of another type are
/// omitted, because typed objects can't hold them.
pub(super) fn object(message: &Message, object: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in message {
        let Some(name) = field.name else {
            one(&mut bytes, field, object);
            continue;
        };
        match (field.shape, object.get(name)) {
            (_, None | Some(Value::Null)) => {}
            (Shape::One, Some(value)) => one(&mut bytes, field, value),
            (Shape::List, Some(value)) => {
                for entry in value.as_array().into_iter().flatten() {
                    one(&mut bytes, field, entry);
                }
            }
            (Shape::Map, Some(value)) => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, key.as_bytes());
                    one(
                        &mut entry,
                        &Field {
                            number: 2,
                            ..field.clone()
                        },
                        value,
                    );
                    put_bytes(&mut bytes, field.number, &entry);
                }
            }
        }
    }
    bytes
}

fn one(bytes: &mut Vec<u8>, field: &Field, value: &Value) {
    let number = field.number;
    match &field.kind {
        Type::Number => {
            if let Some(value) = value.as_i64() {
                put_number(bytes, number, value.cast_unsigned());
            }
        }
        Type::Flag => {
            if let Some(value) = value.as_bool() {
                put_number(bytes, number, value.into());
            }
        }
        kind => {
            if let Some(value) = of_length(kind, value) {
                put_bytes(bytes, number, &value);
            }
        }
    }
}

/// A length-delimited value.
fn of_length(kind: &Type, value: &Value) -> Option<Vec<u8>> {
    let text = value.as_str();
    match kind {
        Type::Text => Some(text?.as_bytes().to_vec()),
        Type::Bytes => base64::decode(text?),
        Type::Time => time(text?, 1_000_000_000),
        Type::MicroTime => time(text?, 1000),
        Type::Quantity => {
            let text = text.map_or_else(|| value.to_string(), str::to_owned);
            Some(within(|bytes| put_bytes(bytes, 1, text.as_bytes())))
        }
        Type::IntOrString => Some(within(|bytes| match value.as_i64() {
            Some(value) => {
                put_number(bytes, 1, 0);
                put_number(bytes, 2, value.cast_unsigned());
            }
            None => {
                put_number(bytes, 1, 1);
                put_bytes(bytes, 3, text.unwrap_or_default().as_bytes());
            }
        })),
        Type::Texts => Some(within(|bytes| {
            let texts = value.as_array().into_iter().flatten();
            for text in texts.filter_map(Value::as_str) {
                put_bytes(bytes, 1, text.as_bytes());
            }
        })),
        Type::Json => Some(within(|bytes| {
            put_bytes(bytes, 1, value.to_string().as_bytes());
        })),
        Type::Message(name) if value.is_object() => Some(object(schema::message(name)?, value)),
        Type::Message(_) | Type::Number | Type::Flag => None,
    }
}

fn within(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes);
    bytes
}

/// A time, truncated to a unit in nanoseconds.
fn time(text: &str, unit: i32) -> Option<Vec<u8>> {
    let time: Timestamp = text.parse().ok()?;
    let nanos = time.subsec_nanosecond() / unit * unit;
    Some(within(|bytes| {
        put_number(bytes, 1, time.as_second().cast_unsigned());
        put_number(bytes, 2, i64::from(nanos).cast_unsigned());
    }))
}
