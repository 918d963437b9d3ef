//! Errors of fields, in the form of the API server's.

use std::fmt;

use rubelet_yaml::Position;

use super::Path;

/// One mistake in one field of a pod.
///
/// Displays as `line 7, column 5: spec.containers[0].name: Required value`; without the position where
/// it is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field, such as `spec.containers[0].env[2].name`.
    pub field: String,
    /// What kind of mistake.
    pub kind: FieldErrorKind,
    /// What is wrong and what to do, without the field.
    pub message: String,
    /// Where in the manifest the field, or the nearest part around it, stands.
    pub position: Option<Position>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "{position}: ")?;
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}

/// Kinds of mistakes, named as the API server names them, and one of Rubelet's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The value breaks a rule.
    Invalid,
    /// A value is missing.
    Required,
    /// The value is not in a fixed set.
    Unsupported,
    /// The value must be unique and is not.
    Duplicate,
    /// The value names something that does not exist.
    NotFound,
    /// The field must not be set here.
    Forbidden,
    /// The field is valid, and this release can't honour it.
    NotSupportedYet,
}

/// Collects all mistakes of one pod.
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<FieldError>,
    relaxed: bool,
}

impl Errors {
    /// For a pod that an API server has validated: the forms of names are its business, which
    /// loosens their rules from time to time.
    pub(crate) fn relaxed() -> Self {
        Self {
            relaxed: true,
            ..Self::default()
        }
    }

    /// See [`Errors::relaxed`].
    pub(crate) fn are_relaxed(&self) -> bool {
        self.relaxed
    }

    fn add(&mut self, path: &Path<'_>, kind: FieldErrorKind, message: String) {
        self.list.push(FieldError {
            field: path.to_string(),
            kind,
            message,
            position: None,
        });
    }

    pub(crate) fn invalid(
        &mut self,
        path: &Path<'_>,
        value: impl fmt::Debug,
        detail: impl fmt::Display,
    ) {
        let message = format!("Invalid value: {value:?}: {detail}");
        self.add(path, FieldErrorKind::Invalid, message);
    }

    pub(crate) fn required(&mut self, path: &Path<'_>, detail: &str) {
        let message = match detail {
            "" => "Required value".to_owned(),
            detail => format!("Required value: {detail}"),
        };
        self.add(path, FieldErrorKind::Required, message);
    }

    pub(crate) fn unsupported(&mut self, path: &Path<'_>, value: &str, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message = format!(
            "Unsupported value: {value:?}: supported values: {}",
            quoted.join(", ")
        );
        self.add(path, FieldErrorKind::Unsupported, message);
    }

    pub(crate) fn duplicate(&mut self, path: &Path<'_>, value: impl fmt::Debug) {
        self.add(
            path,
            FieldErrorKind::Duplicate,
            format!("Duplicate value: {value:?}"),
        );
    }

    pub(crate) fn not_found(&mut self, path: &Path<'_>, value: &str, detail: &str) {
        let message = format!("Not found: {value:?}: {detail}");
        self.add(path, FieldErrorKind::NotFound, message);
    }

    pub(crate) fn forbidden(&mut self, path: &Path<'_>, detail: impl fmt::Display) {
        self.add(
            path,
            FieldErrorKind::Forbidden,
            format!("Forbidden: {detail}"),
        );
    }

    /// A limit of local storage in a manifest: those who exceed one are evicted, which static pods
    /// never are.
    pub(crate) fn no_eviction(&mut self, path: &Path<'_>) {
        self.forbidden(
            path,
            "pods of manifests are never evicted, so nothing would hold them to a limit of the disk; \
             leave it out, or use an emptyDir with the medium Memory",
        );
    }

    pub(crate) fn not_yet(&mut self, path: &Path<'_>, detail: impl fmt::Display) {
        self.add(
            path,
            FieldErrorKind::NotSupportedYet,
            format!("Not supported yet: {detail}"),
        );
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The mistakes in the order of the manifest, each with its position.
    pub(crate) fn into_list(
        self,
        position_of: impl Fn(&str) -> Option<Position>,
    ) -> Vec<FieldError> {
        let mut list = self.list;
        for error in &mut list {
            error.position = position_of(&error.field);
        }
        list.sort_by_key(|error| {
            error
                .position
                .map_or((1, None), |position| (0, Some(position)))
        });
        list
    }
}
