//! Bodies in protobuf: newer kubectl sends those objects so that it has types for. Only these are read;
//! answers are always JSON.

mod schema;

use jiff::Timestamp;
use serde_json::{Map, Value};

use self::schema::{Field, Schema, of_kind};
use crate::{base64, clock};

/// The media type of such bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The object of a body as JSON, or why it can't be read.
pub(crate) fn read(body: &[u8]) -> Result<Value, String> {
    let broken = || "the body is no protobuf of Kubernetes".to_owned();
    let envelope = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let envelope = message(schema::ENVELOPE, envelope).ok_or_else(broken)?;
    let text = |key: &str| envelope["typeMeta"][key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let schema =
        of_kind(kind).ok_or_else(|| format!("objects of the kind {kind} are read as JSON only"))?;
    let raw = envelope["raw"].as_str().and_then(base64::decode);
    let mut object = message(schema, &raw.unwrap_or_default()).ok_or_else(broken)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// One value as it is on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a fixed length; no field that is read has such.
    Other,
}

/// The fields of a message that the schema names. What is empty is left out, as JSON has it.
fn message(schema: Schema, mut bytes: &[u8]) -> Option<Value> {
    let mut object = Map::new();
    while !bytes.is_empty() {
        let (number, wire) = next(&mut bytes)?;
        let mut fields = schema.iter();
        let Some((_, name, field)) = fields.find(|(known, ..)| u64::from(*known) == number) else {
            continue;
        };
        let Some(value) = value(field, &wire)? else {
            continue;
        };
        match (field, object.get_mut(*name)) {
            (Field::Texts | Field::Messages(_), Some(Value::Array(all))) => all.push(value),
            (Field::Texts | Field::Messages(_), _) => {
                object.insert((*name).to_owned(), Value::Array(vec![value]));
            }
            (Field::TextMap | Field::BytesMap, Some(Value::Object(all))) => {
                all.extend(value.as_object().cloned().unwrap_or_default());
            }
            _ => {
                object.insert((*name).to_owned(), value);
            }
        }
    }
    Some(Value::Object(object))
}

fn value(field: &Field, wire: &Wire<'_>) -> Option<Option<Value>> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some(match (field, wire) {
        (Field::Text, Wire::Bytes([])) | (Field::Bytes, Wire::Bytes([])) => None,
        (Field::Text | Field::Texts, Wire::Bytes(bytes)) => Some(text(bytes)?.into()),
        (Field::Bytes, Wire::Bytes(bytes)) => Some(base64::encode(bytes).into()),
        (Field::Number, Wire::Number(number)) => Some(number.cast_signed().into()),
        (Field::Flag, Wire::Number(number)) => Some((*number != 0).into()),
        (Field::Time, Wire::Bytes(bytes)) => time(bytes)?,
        (Field::Message(schema) | Field::Messages(schema), Wire::Bytes(bytes)) => {
            Some(message(schema, bytes)?)
        }
        (Field::TextMap, Wire::Bytes(bytes)) => Some(entry(&Field::Text, bytes)?),
        (Field::BytesMap, Wire::Bytes(bytes)) => Some(entry(&Field::Bytes, bytes)?),
        _ => None,
    })
}

/// One entry of a map: its key is field 1, its value field 2.
fn entry(field: &Field, mut bytes: &[u8]) -> Option<Value> {
    let (mut key, mut found) = (String::new(), Value::from(""));
    while !bytes.is_empty() {
        match next(&mut bytes)? {
            (1, Wire::Bytes(bytes)) => key = String::from_utf8(bytes.to_vec()).ok()?,
            (2, wire) => found = value(field, &wire)?.unwrap_or_else(|| "".into()),
            _ => {}
        }
    }
    let mut map = Map::new();
    map.insert(key, found);
    Some(Value::Object(map))
}

fn time(bytes: &[u8]) -> Option<Option<Value>> {
    let parts = message(schema::TIME, bytes)?;
    let seconds = parts["seconds"].as_i64().unwrap_or(0);
    let time = Timestamp::from_second(seconds).ok();
    // The zero time of Go means none.
    let time = time.filter(|time| *time > Timestamp::UNIX_EPOCH);
    Some(time.map(|time| clock::seconds(time).into()))
}

/// The next field's number and value.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let key = varint(bytes)?;
    let wire = match key & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => {
            take(bytes, 8)?;
            Wire::Other
        }
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            Wire::Bytes(take(bytes, length)?)
        }
        5 => {
            take(bytes, 4)?;
            Wire::Other
        }
        _ => return None,
    };
    Some((key >> 3, wire))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend(bytes);
        field
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let metadata = [field(1, b"cm"), field(2, b"")].concat();
        let pair = |key: &[u8], value: &[u8]| [field(1, key), field(2, value)].concat();
        let raw = [
            field(1, &metadata),
            field(2, &pair(b"a", b"1")),
            field(2, &pair(b"b", b"")),
            field(3, &pair(b"c", b"\x00")),
            vec![4 << 3, 1],
        ]
        .concat();
        assert_eq!(
            read(&body("ConfigMap", &raw)).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cm" },
                "data": { "a": "1", "b": "" }, "binaryData": { "c": "AA==" }, "immutable": true,
            })
        );
    }

    #[test]
    fn broken_bodies_and_other_kinds_are_refused() {
        let good = body("ConfigMap", &field(1, &field(1, b"cm")));
        for end in 0..good.len() {
            // Whatever comes of a part, it is no panic.
            let _ = read(&good[..end]);
        }
        assert!(read(b"{}").is_err());
        let refused = read(&body("Deployment", b"")).unwrap_err();
        assert!(refused.contains("Deployment"), "{refused}");
    }
}
