//! Errors of single fields of an object.

use serde_json::Value;

/// An error of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, such as `status.phase`.
    pub field: String,
    /// `reason` of the cause in the Status: `FieldValueInvalid` or another of its kind.
    pub reason: &'static str,
    /// The error, without the path: `Forbidden: …`.
    pub message: String,
}

impl FieldError {
    /// A field that can't be set in this way.
    pub fn forbidden(field: impl Into<String>, rule: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {rule}"),
        }
    }

    /// A value that breaks a rule.
    pub fn invalid(field: impl Into<String>, value: &Value, rule: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {rule}"),
        }
    }

    /// A value that is missing.
    pub fn required(field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueRequired",
            message: "Required value".to_owned(),
        }
    }
}
