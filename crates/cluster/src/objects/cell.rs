//! One config map or secret, and who uses it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rubelet_api::{
    container::ObjectKind,
    objects::{ConfigMap, Secret},
};
use rubelet_base::PodUid;
use rubelet_kube::WatchTarget;
use tokio::time::Instant;

use super::{draws::Use, follow::Follow};

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectKey {
    /// ConfigMap or Secret.
    pub(super) kind: ObjectKind,
    /// Its namespace.
    pub(super) namespace: Box<str>,
    /// Its name.
    pub(super) name: Box<str>,
}

/// An object as it is kept.
#[derive(Clone, PartialEq)]
pub(super) struct Object {
    /// `metadata.uid`; empty if it is not known.
    pub(super) uid: Box<str>,
    /// What is in it.
    pub(super) content: Content,
    /// `immutable`.
    pub(super) immutable: bool,
}

/// What is in an object.
#[derive(Clone, PartialEq)]
pub(super) enum Content {
    /// ConfigMap.
    ConfigMap(Arc<ConfigMap>),
    /// Secret.
    Secret(Arc<Secret>),
}

/// An object that pods of this node use.
pub(super) struct Cell {
    pub(super) key: ObjectKey,
    pub(super) follow: Follow<Object>,
    state: Mutex<CellState>,
}

/// What changes about a cell, beside what it holds.
pub(super) struct CellState {
    /// Who uses it, and for what.
    pub(super) users: BTreeMap<PodUid, Use>,
    /// When it was last read.
    pub(super) used_at: Instant,
    /// When it was last fetched without a watch; `None`: it has to be.
    pub(super) fetched_at: Option<Instant>,
    /// Somebody read it before it was known for sure.
    pub(super) in_vain: bool,
    /// What is known was read from disk, or may be old.
    pub(super) unconfirmed: bool,
    /// The disk was looked at.
    pub(super) loaded: bool,
}

impl ObjectKey {
    /// Where the API server has it.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    /// The watch of this object alone: a node may watch no others.
    pub(super) fn target(&self) -> WatchTarget {
        WatchTarget {
            path: self.collection(),
            field_selector: Some(format!("metadata.name={}", self.name)),
            label_selector: None,
        }
    }

    fn collection(&self) -> String {
        let plural = match self.kind {
            ObjectKind::ConfigMap => "configmaps",
            ObjectKind::Secret => "secrets",
        };
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    /// The kind as upstream's messages name it.
    pub(super) fn word(&self) -> &'static str {
        match self.kind {
            ObjectKind::ConfigMap => "configmap",
            ObjectKind::Secret => "secret",
        }
    }
}

impl Cell {
    pub(super) fn new(key: ObjectKey) -> Self {
        Self {
            key,
            follow: Follow::new(),
            state: Mutex::new(CellState {
                users: BTreeMap::new(),
                used_at: Instant::now(),
                fetched_at: None,
                in_vain: false,
                unconfirmed: false,
                loaded: false,
            }),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, CellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the object.
    pub(super) fn value(&self) -> Option<Object> {
        self.follow.view().known.values().next().cloned()
    }

    /// Whether a pod needs it in a running container, and not only to start one.
    pub(super) fn has_volumes(&self) -> bool {
        self.state().users.values().any(|of| *of == Use::Volume)
    }
}
