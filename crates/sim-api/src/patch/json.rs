//! JSON patch (RFC 6902), by the crate `json-patch`, with what upstream's library does differently:
//! `replace` also sets a field that is not there, a `test` for null holds for a missing field, and a `copy` of a
//! missing field is a null.

use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

use super::PatchError;

/// Operations in one patch.
const MOST_OPERATIONS: usize = 10_000;

/// Bytes that all copies of one patch may add.
const MOST_COPIED: usize = 3 * 1024 * 1024;

pub(super) fn apply(object: &Value, body: &[u8]) -> Result<Value, PatchError> {
    let operations: Vec<PatchOperation> = serde_json::from_slice(body)
        .map_err(|error| PatchError::Malformed(format!("error decoding patch: {error}")))?;
    if operations.len() > MOST_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut object = object.clone();
    let mut copied = 0;
    for operation in operations {
        let Some(operation) = as_upstream(&object, operation) else {
            continue;
        };
        if let PatchOperation::Copy(copy) = &operation {
            let value = object.pointer(copy.from.as_str());
            copied += value.map_or(0, |value| value.to_string().len());
            if copied > MOST_COPIED {
                let message = format!("the copies add more than {MOST_COPIED} bytes");
                return Err(PatchError::Unfit(message));
            }
        }
        json_patch::patch(&mut object, &[operation])
            .map_err(|error| PatchError::Unfit(error.to_string()))?;
    }
    Ok(object)
}

/// The operation that has the effect of upstream's; `None` if it has none.
fn as_upstream(object: &Value, operation: PatchOperation) -> Option<PatchOperation> {
    let is_missing_field = |path: &str| {
        let holder = path.rsplit_once('/').map(|(holder, _)| holder);
        let holder = holder.and_then(|holder| object.pointer(holder));
        object.pointer(path).is_none() && holder.is_some_and(Value::is_object)
    };
    match operation {
        PatchOperation::Replace(replace) if is_missing_field(replace.path.as_str()) => {
            Some(PatchOperation::Add(AddOperation {
                path: replace.path,
                value: replace.value,
            }))
        }
        PatchOperation::Copy(copy) if is_missing_field(copy.from.as_str()) => {
            Some(PatchOperation::Add(AddOperation {
                path: copy.path,
                value: Value::Null,
            }))
        }
        PatchOperation::Test(test)
            if test.value.is_null() && is_missing_field(test.path.as_str()) =>
        {
            None
        }
        other => Some(other),
    }
}
