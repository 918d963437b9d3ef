//! One document of a text: its value, and the positions of its fields.

use crate::path::{self, Step};
use crate::position_tree::{FieldPart, PositionTree};
use crate::{DecodeError, Position, decode, parse, snippet, split};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A well-formed document; [`Document::decode`] validates its content.
pub struct Document {
    index: usize,
    text: Arc<str>,
    bytes: Range<usize>,
    lines_before: usize,
    value: Value,
    positions: OnceLock<Option<PositionTree>>,
}

/// A decoded value, and every field of the document that its type does not know.
#[derive(Debug)]
pub struct Decoded<T> {
    /// The value.
    pub value: T,
    /// One entry for each unknown field, in the order of the field names.
    pub unknown: Vec<DecodeError>,
}

/// Splits a text into its documents. A JSON text is one document; empty documents and those that
/// contain only null are skipped, so that an empty text has none.
///
/// # Errors
/// The text is not well-formed, repeats a field, or exceeds the parser's limits.
pub fn documents(text: &str) -> Result<Vec<Document>, DecodeError> {
    let shared: Arc<str> = text.into();
    let mut documents = Vec::new();
    for segment in split::split(text) {
        let index = documents.len();
        let value = parse::value(&text[segment.bytes.clone()]).map_err(|syntax_error| {
            let mut error = syntax_error.into_error(index, segment.lines_before);
            error.snippet = error
                .position
                .and_then(|position| snippet::snippet(text, position));
            error
        })?;
        if !value.is_null() {
            documents.push(Document {
                index,
                text: Arc::clone(&shared),
                bytes: segment.bytes,
                lines_before: segment.lines_before,
                value,
                positions: OnceLock::new(),
            });
        }
    }
    Ok(documents)
}

impl Document {
    /// The index of the document in the text, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The document as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Decodes the document and lists the fields that `T` does not know.
    ///
    /// # Errors
    /// A value has the wrong type, or a field that `T` needs is missing.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<Decoded<T>, Box<DecodeError>> {
        self.decode_at("")
    }

    /// Decodes the part at `field`, such as `items[3]`. Fields and positions in errors are relative
    /// to the whole document.
    ///
    /// # Errors
    /// There is no such part, a value has the wrong type, or a field that `T` needs is missing.
    pub fn decode_at<T: DeserializeOwned>(
        &self,
        field: &str,
    ) -> Result<Decoded<T>, Box<DecodeError>> {
        let steps = path::parse(field);
        let Some(value) = self.part(&steps) else {
            return Err(Box::new(self.error(
                &steps,
                FieldPart::Name,
                "missing".to_owned(),
            )));
        };
        let (result, findings) = decode::decode(value, &steps, decode::Rules::Written);
        match result {
            Ok(value) => {
                let unknown = findings.unknown.into_iter();
                let unknown =
                    unknown.map(|(steps, message)| self.error(&steps, FieldPart::Name, message));
                Ok(Decoded {
                    value,
                    unknown: unknown.collect(),
                })
            }
            Err(error) => {
                let steps = findings.failed_at.unwrap_or_default();
                Err(Box::new(self.error(&steps, FieldPart::Value, error.0)))
            }
        }
    }

    /// Decodes the document; an unknown field is an error.
    ///
    /// # Errors
    /// As [`Document::decode`]; else the first unknown field.
    pub fn decode_strict<T: DeserializeOwned>(&self) -> Result<T, Box<DecodeError>> {
        let decoded = self.decode()?;
        match decoded
            .unknown
            .into_iter()
            .min_by_key(|error| error.position)
        {
            Some(error) => Err(Box::new(error)),
            None => Ok(decoded.value),
        }
    }

    /// The position of the field at `path`: its name, or the start of a list's item. A field that
    /// does not exist has the position of its nearest parent.
    #[must_use]
    pub fn position_of(&self, path: &str) -> Option<Position> {
        self.position(&path::parse(path), FieldPart::Name)
    }

    /// An error about the field at `path`, with the position of [`Document::position_of`].
    #[must_use]
    pub fn error_at(&self, path: &str, message: impl Into<String>) -> DecodeError {
        let mut error = self.error(&path::parse(path), FieldPart::Name, message.into());
        error.field = Some(path.to_owned()).filter(|path| !path.is_empty());
        error
    }

    fn part(&self, steps: &[Step]) -> Option<&Value> {
        steps
            .iter()
            .try_fold(&self.value, |value, step| match step {
                Step::Key(key) => value.get(key),
                Step::Index(index) => value.get(index).or_else(|| value.get(index.to_string())),
            })
    }

    fn position(&self, steps: &[Step], aim: FieldPart) -> Option<Position> {
        let tree = self
            .positions
            .get_or_init(|| PositionTree::of(&self.text[self.bytes.clone()]));
        let position = tree.as_ref()?.find(steps, aim)?;
        Some(Position {
            line: position.line + self.lines_before,
            ..position
        })
    }

    fn error(&self, steps: &[Step], aim: FieldPart, message: String) -> DecodeError {
        let position = self.position(steps, aim);
        DecodeError {
            document: self.index,
            position,
            field: Some(path::format(steps)).filter(|path| !path.is_empty()),
            message,
            snippet: position.and_then(|position| snippet::snippet(&self.text, position)),
        }
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("index", &self.index)
            .field("lines_before", &self.lines_before)
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}
