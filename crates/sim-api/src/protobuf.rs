//! Protobuf encoding of objects in requests and, if the client accepts it, in responses. Source of the
//! format: upstream's serializer `runtime/serializer/protobuf` and the published `.proto` files.

mod decode;
mod encode;
mod schema;
mod wire;

use serde_json::Value;

/// The media type of protobuf bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a watch, a sequence of events.
pub(crate) const STREAM_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Prefix of every object.
const MAGIC: &[u8] = b"k8s\0";

/// Decodes a body to JSON. The error says why it can't be decoded.
pub(crate) fn read(body: &[u8]) -> Result<Value, String> {
    let broken = || "the body is not a Kubernetes protobuf".to_owned();
    let mut rest = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (mut kind, mut raw) = (Value::Null, &[] as &[u8]);
    while !rest.is_empty() {
        match wire::next(&mut rest).ok_or_else(broken)? {
            (1, wire::Wire::Bytes(bytes)) => {
                let schema = schema::message("TypeMeta").ok_or_else(broken)?;
                kind = decode::object(schema, bytes).ok_or_else(broken)?;
            }
            (2, wire::Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let text = |key: &str| kind[key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let schema = schema::of_kind(api_version, kind)
        .ok_or_else(|| format!("objects of the kind {kind} are accepted as JSON only"))?;
    let mut object = decode::object(schema, raw).ok_or_else(broken)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// Encodes an object with its type; `None` for kinds without a message here.
pub(crate) fn write(object: &Value) -> Option<Vec<u8>> {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let schema = schema::of_kind(text("apiVersion"), text("kind"))?;
    let mut bytes = MAGIC.to_vec();
    let kind = encode::object(schema::message("TypeMeta")?, object);
    wire::put_bytes(&mut bytes, 1, &kind);
    wire::put_bytes(&mut bytes, 2, &encode::object(schema, object));
    // Encoding and type of the content, which always have their default.
    wire::put_bytes(&mut bytes, 3, b"");
    wire::put_bytes(&mut bytes, 4, b"");
    Some(bytes)
}

/// A frame of a watch: its length in four bytes, then the event with the object.
pub(crate) fn frame(what: &str, object: &Value) -> Option<Vec<u8>> {
    let (mut raw, mut event) = (Vec::new(), Vec::new());
    wire::put_bytes(&mut raw, 1, &write(object)?);
    wire::put_bytes(&mut event, 1, what.as_bytes());
    wire::put_bytes(&mut event, 2, &raw);
    let length = u32::try_from(event.len()).ok()?;
    Some([&length.to_be_bytes(), event.as_slice()].concat())
}

#[cfg(test)]
mod tests;
