//! Type errors in terms of the file, not of the program.

use serde::de::{self, Expected, Unexpected};
use std::fmt;

/// A decoding error without a position, which the decoder adds.
#[derive(Debug)]
pub(crate) struct TypeError(pub(crate) String);

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TypeError {}

impl TypeError {
    /// A struct was expected.
    pub(crate) fn not_a_mapping(name: &str, found: Unexpected<'_>) -> Self {
        Self(format!(
            "expected a mapping ({name}), found {}",
            describe(found)
        ))
    }
}

impl de::Error for TypeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = name_of(&expected.to_string());
        let hint = match found {
            Unexpected::Bool(_) | Unexpected::Signed(_) | Unexpected::Unsigned(_)
                if expected == "a string" =>
            {
                "; put it in quotes"
            }
            Unexpected::Float(_) if expected == "a string" => "; put it in quotes",
            _ => "",
        };
        Self(format!(
            "expected {expected}, found {}{hint}",
            describe(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(format!(
            "expected {}, found {}",
            name_of(&expected.to_string()),
            describe(found)
        ))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("missing field {field:?}"))
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self(format!("unknown field {field:?}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let allowed = expected.join(", ");
        Self(format!("unknown value {variant:?}; allowed are {allowed}"))
    }
}

fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("the boolean {value}"),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(text) => format!("the string {:?}", shortened(text)),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Converts Rust's name of the expected type to YAML terms.
fn name_of(expected: &str) -> String {
    let name = match expected {
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" | "isize" => {
            return whole_number(expected);
        }
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "a mapping",
        "unit" => "nothing",
        "IntOrString" => "a whole number or a string",
        "Quantity" => "a quantity such as 100m or 1Gi",
        other => other,
    };
    name.to_owned()
}

fn whole_number(rust_type: &str) -> String {
    match rust_type {
        "i32" => "a whole number from -2147483648 to 2147483647".to_owned(),
        "u16" => "a whole number from 0 to 65535".to_owned(),
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u32" => "a whole number from 0 to 4294967295".to_owned(),
        unsigned if unsigned.starts_with('u') => "a whole number of 0 or more".to_owned(),
        _ => "a whole number".to_owned(),
    }
}
