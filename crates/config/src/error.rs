//! The error of an invalid configuration.

use crate::origins::Origin;
use rubelet_yaml::{DecodeError, Position};
use std::fmt;

/// Why a configuration is invalid.
///
/// Displays as `/etc/kubernetes/kubelet.yaml:7:3: maxPods: must be 0 or more, is -1`, or as
/// `--max-pods: must be 0 or more, is -1` when a flag gave the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The origin of the value.
    pub origin: Origin,
    /// Line and column in that file.
    pub position: Option<Position>,
    /// Path of the field.
    pub field: Option<String>,
    /// The problem, and what is allowed.
    pub message: String,
    /// The line in question, for a terminal.
    pub snippet: Option<Box<str>>,
}

impl ConfigError {
    /// Converts a decoder's error about the file that `origin` names.
    pub(crate) fn in_file(origin: &Origin, error: DecodeError) -> Self {
        let DecodeError {
            position,
            field,
            message,
            snippet,
            ..
        } = error;
        let snippet = snippet.map(String::into_boxed_str);
        Self {
            origin: origin.clone(),
            position,
            field,
            message,
            snippet,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, self.position) {
            (Origin::File { path, .. } | Origin::DropIn { path, .. }, Some(position)) => {
                write!(f, "{path}:{}:{}: ", position.line, position.column)?;
            }
            (Origin::File { path, .. } | Origin::DropIn { path, .. }, None) => {
                write!(f, "{path}: ")?;
            }
            (Origin::Flag { name }, _) => return write!(f, "--{name}: {}", self.message),
            (Origin::Default, _) => {}
        }
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ConfigError {}
