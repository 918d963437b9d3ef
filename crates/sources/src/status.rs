//! The status of each manifest, and its events.

use std::fmt;

use jiff::Timestamp;
use rubelet_base::{PodName, PodUid};
use serde::Serialize;

/// One manifest file or URL, or the directory itself when it can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestStatus {
    /// The path, or the URL without its password.
    pub origin: Box<str>,
    /// `file` or `http`.
    pub source: &'static str,
    /// Its state.
    pub state: ManifestState,
    /// The pods that this manifest defines.
    pub pods: Vec<ManifestPod>,
    /// The reason if the state is not `Ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The problems as text, with line and field; empty without problems.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// All problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// When the manifest was last found valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good_time: Option<Timestamp>,
    /// When its content last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_change_time: Option<Timestamp>,
}

/// State of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ManifestState {
    /// All its pods are accepted.
    Ok,
    /// A part of it is rejected; pods of its last good version keep running.
    Bad,
    /// It defines no pods.
    Empty,
    /// It is not a manifest, by its name or type.
    Skipped,
}

/// A pod of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestPod {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`, with the node's name.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
}

/// The reason for which a manifest, or a part of it, is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Reason {
    /// Not YAML or JSON, or not a pod.
    ParseError,
    /// A field that a pod does not have.
    UnknownField,
    /// A value that violates a rule of the API.
    Invalid,
    /// A valid field that this release does not support.
    NotSupported,
    /// The pod's name belongs to another manifest.
    Duplicate,
    /// Larger than 10 MiB.
    TooLarge,
    /// The file can't be read.
    Unreadable,
    /// The file is empty although it had pods.
    EmptyFile,
    /// The directory or single file does not exist.
    Missing,
    /// The URL is not reachable, or returns an error.
    Unreachable,
    /// Skipped: the name begins with a dot.
    Hidden,
    /// Skipped: the name is that of a copy by an editor or package tool.
    BackupFile,
    /// Skipped: directories are not entered.
    Directory,
    /// Skipped: a pipe, socket or device.
    NotAFile,
    /// Skipped: the name is not UTF-8.
    BadName,
}

impl Reason {
    /// `reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ParseError => "ParseError",
            Self::UnknownField => "UnknownField",
            Self::Invalid => "Invalid",
            Self::NotSupported => "NotSupported",
            Self::Duplicate => "Duplicate",
            Self::TooLarge => "TooLarge",
            Self::Unreadable => "Unreadable",
            Self::EmptyFile => "EmptyFile",
            Self::Missing => "Missing",
            Self::Unreachable => "Unreachable",
            Self::Hidden => "Hidden",
            Self::BackupFile => "BackupFile",
            Self::Directory => "Directory",
            Self::NotAFile => "NotAFile",
            Self::BadName => "BadName",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A problem with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Its reason.
    pub reason: Reason,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The field as a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What is wrong and how to fix it, without position and field.
    pub message: String,
    /// `namespace/name` of the pod, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

impl Problem {
    /// A problem of the manifest as a whole.
    #[must_use]
    pub fn whole(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            line: None,
            column: None,
            field: None,
            message: message.into(),
            pod: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}")?;
            if let Some(column) = self.column {
                write!(f, ", column {column}")?;
            }
            f.write_str(": ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// An event for the operator. It is not repeated while the manifest is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEvent {
    /// Reason of the event.
    pub reason: EventReason,
    /// The reason of the first problem.
    pub cause: Option<Reason>,
    /// The message, with the origin.
    pub message: String,
    /// The file or URL.
    pub origin: Box<str>,
    /// The pod, if known.
    pub pod: Option<PodName>,
    /// The UID of that pod, if it is desired.
    pub uid: Option<PodUid>,
}

/// Reasons of manifest events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventReason {
    /// Warning: a manifest, or a part of it, is rejected.
    FailedManifest,
    /// Normal: a manifest that was rejected is valid again.
    ManifestRecovered,
}

impl EventReason {
    /// The event's `reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FailedManifest => "FailedManifest",
            Self::ManifestRecovered => "ManifestRecovered",
        }
    }

    /// True if the event's `type` is `Warning`, false for `Normal`.
    #[must_use]
    pub fn is_warning(self) -> bool {
        matches!(self, Self::FailedManifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_the_same_word_in_text_and_json() {
        for reason in [
            Reason::ParseError,
            Reason::BackupFile,
            Reason::EmptyFile,
            Reason::BadName,
        ] {
            let json = serde_json::to_string(&reason).expect("a word");
            assert_eq!(json, format!("\"{reason}\""));
        }
    }

    #[test]
    fn a_problem_names_place_and_field_where_they_are_known() {
        let whole = Problem::whole(Reason::TooLarge, "larger than 10 MiB");
        assert_eq!(whole.to_string(), "larger than 10 MiB");
        let field = Problem {
            line: Some(7),
            column: Some(3),
            field: Some("spec.x".to_owned()),
            ..Problem::whole(Reason::UnknownField, "unknown field")
        };
        assert_eq!(field.to_string(), "line 7, column 3: spec.x: unknown field");
    }
}
