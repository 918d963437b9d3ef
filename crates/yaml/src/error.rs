//! What is wrong in a text, and where.

use std::fmt;

/// A position in a text. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One error in one document of a text.
///
/// Displays as `line 7, column 3: spec.containers[0].imagee: unknown field`; unknown parts are
/// omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The index of the document, from 0; empty documents are not counted.
    pub document: usize,
    /// The position in the whole text: of the name for an unknown or repeated field, of the value
    /// for an invalid value.
    pub position: Option<Position>,
    /// The field as a path, such as `spec.containers[0].image`.
    pub field: Option<String>,
    /// What is wrong, without position and field.
    pub message: String,
    /// The line of the error and the one before it, with a mark below the column. Ends without a
    /// line feed.
    pub snippet: Option<String>,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "{position}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}
