//! One document of a text: its value, and the way back from a field to its place.

use crate::path::{self, Step};
use crate::place_tree::{Aim, PlaceTree};
use crate::{DecodeError, Place, decode, parse, snippet, split};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A document that is well-formed; whether it means something is for [`Document::decode`] to say.
pub struct Document {
    index: usize,
    text: Arc<str>,
    bytes: Range<usize>,
    lines_before: usize,
    value: Value,
    places: OnceLock<Option<PlaceTree>>,
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
/// hold only null are left out, so that an empty text has none.
///
/// # Errors
/// The text is not well-formed, names a field twice, or asks for more than the parser's budgets allow.
pub fn documents(text: &str) -> Result<Vec<Document>, DecodeError> {
    let shared: Arc<str> = text.into();
    let mut documents = Vec::new();
    for segment in split::split(text) {
        let index = documents.len();
        let value = parse::value(&text[segment.bytes.clone()]).map_err(|fault| {
            let mut error = fault.into_error(index, segment.lines_before);
            error.snippet = error.place.and_then(|place| snippet::snippet(text, place));
            error
        })?;
        if !value.is_null() {
            documents.push(Document {
                index,
                text: Arc::clone(&shared),
                bytes: segment.bytes,
                lines_before: segment.lines_before,
                value,
                places: OnceLock::new(),
            });
        }
    }
    Ok(documents)
}

impl Document {
    /// Which document of the text this is, from 0.
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

    /// Decodes the part at `field`, such as `items[3]`. Fields and places of errors are those of the
    /// whole document.
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
                Aim::Name,
                "missing".to_owned(),
            )));
        };
        let (result, findings) = decode::decode(value, &steps, decode::Rules::Written);
        match result {
            Ok(value) => {
                let unknown = findings.unknown.into_iter();
                let unknown =
                    unknown.map(|(steps, message)| self.error(&steps, Aim::Name, message));
                Ok(Decoded {
                    value,
                    unknown: unknown.collect(),
                })
            }
            Err(error) => {
                let steps = findings.failed_at.unwrap_or_default();
                Err(Box::new(self.error(&steps, Aim::Value, error.0)))
            }
        }
    }

    /// Decodes the document, and takes an unknown field for an error.
    ///
    /// # Errors
    /// As [`Document::decode`]; else the first unknown field.
    pub fn decode_strict<T: DeserializeOwned>(&self) -> Result<T, Box<DecodeError>> {
        let decoded = self.decode()?;
        match decoded.unknown.into_iter().min_by_key(|error| error.place) {
            Some(error) => Err(Box::new(error)),
            None => Ok(decoded.value),
        }
    }

    /// Where the field at `path` stands: its name, or for an item of a list its begin. A field that
    /// does not exist has the place of its nearest parent.
    #[must_use]
    pub fn place_of(&self, path: &str) -> Option<Place> {
        self.place(&path::parse(path), Aim::Name)
    }

    /// An error about the field at `path`, with the place of [`Document::place_of`].
    #[must_use]
    pub fn error_at(&self, path: &str, message: impl Into<String>) -> DecodeError {
        let mut error = self.error(&path::parse(path), Aim::Name, message.into());
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

    fn place(&self, steps: &[Step], aim: Aim) -> Option<Place> {
        let tree = self
            .places
            .get_or_init(|| PlaceTree::of(&self.text[self.bytes.clone()]));
        let place = tree.as_ref()?.find(steps, aim)?;
        Some(Place {
            line: place.line + self.lines_before,
            ..place
        })
    }

    fn error(&self, steps: &[Step], aim: Aim, message: String) -> DecodeError {
        let place = self.place(steps, aim);
        DecodeError {
            document: self.index,
            place,
            field: Some(path::format(steps)).filter(|path| !path.is_empty()),
            message,
            snippet: place.and_then(|place| snippet::snippet(&self.text, place)),
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
