//! Objects that no API server should send, for tests of clients. A seed chooses the malformed fields;
//! the same seed gives the same object.

use serde_json::Value;

use crate::dice::Dice;

/// Maps with arbitrary keys. A null in one is an empty value, not the same as a missing key.
const OPEN: [&str; 10] = [
    "allocatable",
    "annotations",
    "binaryData",
    "capacity",
    "data",
    "extra",
    "labels",
    "limits",
    "nodeSelector",
    "requests",
];

/// An object in which some fields are null, and the same object without these fields. `keep` has the
/// JSON pointers of fields that are left unchanged, with everything in them.
#[must_use]
pub fn with_nulls(seed: u64, object: &Value, keep: &[&str]) -> (Value, Value) {
    let mut dice = Dice::new(seed);
    let (mut nulls, mut absent) = (object.clone(), object.clone());
    // Nested fields come later, and are gone if their parent is.
    for pointer in fields(object, keep) {
        let holder = pointer.rsplit('/').nth(1).unwrap_or_default();
        if !OPEN.contains(&holder) && dice.hits(0.15) {
            remove(&mut absent, &pointer);
            if let Some(field) = nulls.pointer_mut(&pointer) {
                *field = Value::Null;
            }
        }
    }
    (nulls, absent)
}

/// An object in which one field has another type, the same object without this field, and the field's
/// JSON pointer.
#[must_use]
pub fn with_wrong_type(seed: u64, object: &Value, keep: &[&str]) -> (Value, Value, String) {
    let fields = fields(object, keep);
    let count = u64::try_from(fields.len()).unwrap_or(u64::MAX).max(1);
    let chosen = usize::try_from(Dice::new(seed).next() % count).unwrap_or_default();
    let pointer = fields.get(chosen).cloned().unwrap_or_default();
    let (mut wrong, mut absent) = (object.clone(), object.clone());
    if let Some(field) = wrong.pointer_mut(&pointer) {
        *field = match field {
            Value::Array(_) | Value::Object(_) => "odd".into(),
            _ => Value::Array(vec![Value::Null]),
        };
    }
    remove(&mut absent, &pointer);
    (wrong, absent, pointer)
}

/// Pointers of all fields of maps, each before its nested fields.
fn fields(object: &Value, keep: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    below(object, "", keep, &mut found);
    found
}

fn below(value: &Value, at: &str, keep: &[&str], found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{at}/{name}");
                let inside = format!("{pointer}/");
                if keep.contains(&&*pointer) {
                    continue;
                }
                if !keep.iter().any(|kept| kept.starts_with(&inside)) {
                    found.push(pointer.clone());
                }
                below(value, &pointer, keep, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(item, &format!("{at}/{index}"), keep, found);
            }
        }
        _ => {}
    }
}

fn remove(object: &mut Value, pointer: &str) {
    if let Some((holder, name)) = pointer.rsplit_once('/') {
        let name = name.replace("~1", "/").replace("~0", "~");
        let holder = object.pointer_mut(holder).and_then(Value::as_object_mut);
        holder.and_then(|fields| fields.remove(&name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_seed_chooses_fields_and_kept_fields_are_unchanged() {
        let object = json!({"metadata": {"name": "a", "labels": {"x/y": "z"}}, "spec": {"list": [{"b": 1}]}});
        let keep = ["/metadata/name"];
        assert_eq!(fields(&object, &keep).len(), 5);
        let mut different = 0;
        for seed in 0..100 {
            let (nulls, absent) = with_nulls(seed, &object, &keep);
            assert_eq!(nulls["metadata"]["name"], "a");
            assert_eq!(absent["metadata"]["name"], "a");
            assert_eq!((nulls, absent), with_nulls(seed, &object, &keep));
            let (wrong, absent, pointer) = with_wrong_type(seed, &object, &keep);
            assert_ne!(wrong.pointer(&pointer), object.pointer(&pointer));
            assert_eq!(absent.pointer(&pointer), None);
            different += usize::from(with_nulls(seed, &object, &keep).0 != object);
        }
        assert!(different > 30);
    }
}
