//! The support matrix: every field of a v1 Pod manifest, and what Rubelet makes of it.
//!
//! One table decides what the parser refuses, in manifests and in pods of the API server, and is the
//! source of `docs/fields.md`. A field of the
//! schema without a row fails a test.

mod check;
mod markdown;
mod table;
mod verdict;

pub use check::{Idle, without_effect};
pub(crate) use check::{check, check_container};
pub use markdown::markdown;

/// One field, or one part of the schema with all fields below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The path, with `[]` behind a list and `{}` behind a map. `spec.containers[]` also stands for
    /// `spec.initContainers[]`.
    pub path: &'static str,
    /// What becomes of it.
    pub support: Support,
}

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Works as in upstream's kubelet.
    Full,
    /// Works for some values, as the text says; all others are refused.
    Partial(&'static str),
    /// Accepted, and changes nothing on a node by itself, as the text says; nor would it with
    /// upstream's kubelet.
    NoEffect(&'static str),
    /// Refused until it is built, as the text says.
    NotYet(&'static str),
    /// Works for pods of the API server. A manifest is refused, because it refers to an object of the
    /// API server, which the text names.
    ApiObject(&'static str),
    /// As [`Support::ApiObject`] for a manifest; a pod of the API server is refused until the kind of
    /// object is supported.
    ApiObjectNotYet(&'static str),
    /// Works for pods of the API server, as with upstream's kubelet. A manifest is refused, as the
    /// text says.
    ApiOnly(&'static str),
    /// Works for pods of the API server; in a manifest it is accepted and has no effect, as the text
    /// says.
    ApiEffect(&'static str),
    /// Refused for good, as the text says.
    Never(&'static str),
}

impl Support {
    /// True where setting the field makes a manifest bad.
    #[must_use]
    pub fn is_refused(self) -> bool {
        matches!(
            self,
            Self::NotYet(_)
                | Self::ApiObject(_)
                | Self::ApiObjectNotYet(_)
                | Self::ApiOnly(_)
                | Self::Never(_)
        )
    }
}

/// The table, sorted by path.
#[must_use]
pub fn rows() -> &'static [Row] {
    table::ROWS
}

/// The row of exactly this path.
#[must_use]
pub fn row(path: &str) -> Option<&'static Row> {
    table::ROWS
        .binary_search_by(|row| row.path.cmp(path))
        .ok()
        .map(|index| &table::ROWS[index])
}
