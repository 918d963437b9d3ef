//! One file of the configuration, parsed and checked individually.

use crate::error::ConfigError;
use crate::fields::{API_VERSION, KIND, KubeletConfiguration};
use crate::origins::Origin;
use crate::rubelet_options::RubeletOptions;
use rubelet_yaml::{DecodeError, Document};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Key of Rubelet's own section.
pub(crate) const RUBELET: &str = "rubelet";
/// Keys of a file that are not fields of the KubeletConfiguration.
const HEADER: [&str; 3] = ["apiVersion", "kind", RUBELET];

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerKind {
    File,
    DropIn,
}

/// A file with known fields of the right types only.
pub(crate) struct Layer {
    kind: LayerKind,
    path: Arc<str>,
    document: Document,
}

impl Layer {
    /// Parses one KubeletConfiguration.
    pub(crate) fn read(kind: LayerKind, path: &str, text: &str) -> Result<Self, ConfigError> {
        let path: Arc<str> = path.into();
        let origin = origin(kind, &path, 0);
        let fail = |message: String| ConfigError {
            origin: origin.clone(),
            position: None,
            field: None,
            message,
            snippet: None,
        };
        let mut documents =
            rubelet_yaml::documents(text).map_err(|error| ConfigError::in_file(&origin, error))?;
        if documents.len() != 1 {
            let found = match documents.len() {
                0 => "is empty".to_owned(),
                count => format!("has {count} documents"),
            };
            return Err(fail(format!(
                "{found}; write one document with kind: {KIND}"
            )));
        }
        let layer = Self {
            kind,
            path,
            document: documents.remove(0),
        };
        layer
            .check()
            .map_err(|error| ConfigError::in_file(&origin, error))?;
        Ok(layer)
    }

    fn check(&self) -> Result<(), DecodeError> {
        let document = &self.document;
        let value = document.value();
        for (key, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            let found = value.get(key);
            if found.and_then(Value::as_str) != Some(expected) && value.is_object() {
                let found = found.map_or("is missing".to_owned(), |found| format!("is {found}"));
                return Err(document.error_at(key, format!("must be {expected:?}, {found}")));
            }
        }
        let decoded = document
            .decode::<KubeletConfiguration>()
            .map_err(|error| *error)?;
        let mut unknown = decoded.unknown;
        unknown.retain(|error| {
            !error
                .field
                .as_deref()
                .is_some_and(|field| HEADER.contains(&field))
        });
        if value.get(RUBELET).is_some_and(|section| !section.is_null()) {
            let own = document
                .decode_at::<RubeletOptions>(RUBELET)
                .map_err(|error| *error)?;
            unknown.extend(own.unknown);
        }
        match unknown.into_iter().min_by_key(|error| error.position) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The fields that the file sets, including Rubelet's.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let mut fields = match self.document.value() {
            Value::Object(fields) => fields.clone(),
            _ => Map::new(),
        };
        fields.remove("apiVersion");
        fields.remove("kind");
        fields
    }

    /// The origin of the field at `path`, if it is in this file.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        let line = self
            .document
            .position_of(path)
            .map_or(0, |position| position.line);
        origin(self.kind, &self.path, line)
    }

    /// Whether `origin` names this file.
    pub(crate) fn is(&self, origin: &Origin) -> bool {
        match origin {
            Origin::File { path, .. } => self.kind == LayerKind::File && *path == self.path,
            Origin::DropIn { path, .. } => self.kind == LayerKind::DropIn && *path == self.path,
            Origin::Default | Origin::Flag { .. } => false,
        }
    }

    /// An error about the field at `path` of this file.
    pub(crate) fn error_at(&self, path: &str, message: String) -> ConfigError {
        ConfigError::in_file(&self.origin(path), self.document.error_at(path, message))
    }
}

fn origin(kind: LayerKind, path: &Arc<str>, line: usize) -> Origin {
    let path = Arc::clone(path);
    match kind {
        LayerKind::File => Origin::File { path, line },
        LayerKind::DropIn => Origin::DropIn { path, line },
    }
}
