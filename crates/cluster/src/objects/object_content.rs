//! The content of config maps and secrets.

use std::sync::Arc;

use rubelet_api::objects::{ConfigMap, Secret};

/// The cached content of an object.
#[derive(Clone, PartialEq)]
pub(super) struct Object {
    /// `metadata.uid`; empty if it is not known.
    pub(super) uid: Box<str>,
    /// Its content.
    pub(super) content: Content,
    /// `immutable`.
    pub(super) immutable: bool,
}

/// The content of an object.
#[derive(Clone, PartialEq)]
pub(super) enum Content {
    /// ConfigMap.
    ConfigMap(Arc<ConfigMap>),
    /// Secret.
    Secret(Arc<Secret>),
}
