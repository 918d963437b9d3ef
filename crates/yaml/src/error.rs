//! What is wrong in a text, and where.

use std::fmt;

/// A position in a text. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One mistake in one document of a text.
///
/// Displays as `line 7, column 3: spec.containers[0].imagee: unknown field`; the parts that are not
/// known are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Which document of the text, from 0; empty documents are not counted.
    pub document: usize,
    /// Where in the whole text. An unknown or doubled field is shown at its name, a bad value at
    /// the value.
    pub place: Option<Place>,
    /// The field as a path, such as `spec.containers[0].image`.
    pub field: Option<String>,
    /// What is wrong, without place and field.
    pub message: String,
    /// The line in question and the one before it, with a mark below the column. Ends without a
    /// line feed.
    pub snippet: Option<String>,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}
