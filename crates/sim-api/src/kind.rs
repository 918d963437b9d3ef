//! The kinds that are served, and their verbs.

mod table;

pub use self::table::KINDS;

/// A resource of the API.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version in the group.
    pub version: &'static str,
    /// The name in paths.
    pub plural: &'static str,
    /// The name of one object.
    pub singular: &'static str,
    /// `kind` of one object.
    pub kind: &'static str,
    /// Short names, for kubectl.
    pub short_names: &'static [&'static str],
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// Subresources, and the kind of their body.
    pub subresources: &'static [(&'static str, &'static str)],
    /// Field selectors besides name and namespace: the label, and the pointer to the value.
    pub fields: &'static [(&'static str, &'static str)],
    /// The collection in which objects are stored; two kinds may share one.
    pub storage: &'static str,
    /// Whether nothing is stored: the response to a creation is the only result.
    pub is_review: bool,
    /// Whether PUT creates a missing object.
    pub creates_on_update: bool,
}

impl Kind {
    /// `v1` or `group/version`.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `pods` or `leases.coordination.k8s.io`, as in messages.
    #[must_use]
    pub fn qualified(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The path of the collection, or of one namespace of it.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("{root}/namespaces/{namespace}/{}", self.plural)
            }
            _ => format!("{root}/{}", self.plural),
        }
    }

    /// The verbs, in the order of discovery.
    #[must_use]
    pub fn verbs(&self) -> &'static [&'static str] {
        if self.is_review {
            return &["create"];
        }
        &[
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ]
    }

    /// The kind of this group, version and plural.
    #[must_use]
    pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The kind of this plural, or `plural.group`: `pods`, `events.events.k8s.io`.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        let exact = KINDS.iter().find(|kind| kind.qualified() == name);
        exact.or_else(|| KINDS.iter().find(|kind| kind.plural == name))
    }

    /// Whether it is this plural of the core group.
    pub(crate) fn is(&self, storage: &str) -> bool {
        self.storage == storage
    }

    /// Whether the kind has this subresource.
    pub(crate) fn has(&self, subresource: &str) -> bool {
        self.subresources
            .iter()
            .any(|(name, _)| *name == subresource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_plural_and_group() {
        for (name, path) in [
            ("pods", "/api/v1/namespaces/a/pods"),
            ("nodes", "/api/v1/nodes"),
            ("events", "/api/v1/namespaces/a/events"),
            (
                "events.events.k8s.io",
                "/apis/events.k8s.io/v1/namespaces/a/events",
            ),
            ("leases", "/apis/coordination.k8s.io/v1/namespaces/a/leases"),
        ] {
            let kind = Kind::of(name).expect(name);
            assert_eq!(kind.path(Some("a")), path);
        }
        assert!(Kind::of("deployments").is_none());
    }
}
