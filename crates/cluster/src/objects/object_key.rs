//! Identity of an API object.

use rubelet_api::container::ObjectKind;
use rubelet_kube::WatchTarget;

/// Identity of an API object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectKey {
    /// ConfigMap or Secret.
    pub(super) kind: ObjectKind,
    /// Its namespace.
    pub(super) namespace: Box<str>,
    /// Its name.
    pub(super) name: Box<str>,
}

impl ObjectKey {
    /// Its path at the API server.
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
