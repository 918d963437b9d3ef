//! Secrets.

use serde_json::Value;

use crate::{base64, meta};

pub(super) fn before_create(object: &mut Value) {
    meta::default(object, "type", "Opaque");
    take_texts(object);
}

pub(super) fn before_update(old: &Value, new: &mut Value) {
    meta::copy_field(new, old, "type");
    take_texts(new);
}

/// `stringData` is write-only: it is moved to `data`.
fn take_texts(object: &mut Value) {
    let texts = object
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"));
    let Some(Value::Object(texts)) = texts else {
        return;
    };
    let data = meta::fields(object, "data");
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, base64::encode(text.as_bytes()).into());
    }
}
