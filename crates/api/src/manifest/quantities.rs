//! Quantities written as bare numbers: `cpu: 2` means `cpu: "2"`.

use serde_json::Value;

/// The pod as JSON text with all bare quantities in quotes; `None` without bare quantities.
pub(super) fn as_texts(pod: &Value) -> Option<String> {
    let spec = pod.get("spec")?;
    if !holds_bare(spec) {
        return None;
    }
    let mut pod = pod.clone();
    quote(pod.get_mut("spec")?);
    Some(pod.to_string())
}

/// Maps of quantities, and fields with a quantity.
fn is_map_of_quantities(key: &str) -> bool {
    matches!(key, "limits" | "requests" | "overhead")
}

fn is_quantity(key: &str) -> bool {
    matches!(key, "sizeLimit" | "divisor")
}

fn holds_bare(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_bare),
        Value::Object(fields) => fields.iter().any(|(key, part)| match part {
            Value::Number(_) => is_quantity(key),
            Value::Object(entries) if is_map_of_quantities(key) => {
                entries.values().any(Value::is_number)
            }
            _ => holds_bare(part),
        }),
        _ => false,
    }
}

/// Puts all bare quantities below `value` into quotes.
pub(crate) fn quote(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(quote),
        Value::Object(fields) => {
            for (key, part) in fields {
                match part {
                    Value::Number(number) if is_quantity(key) => {
                        *part = Value::String(number.to_string());
                    }
                    Value::Object(entries) if is_map_of_quantities(key) => {
                        for amount in entries.values_mut().filter(|amount| amount.is_number()) {
                            *amount = Value::String(amount.to_string());
                        }
                    }
                    _ => quote(part),
                }
            }
        }
        _ => {}
    }
}
