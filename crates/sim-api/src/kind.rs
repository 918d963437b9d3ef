//! The kinds of objects that are served, and what can be done to them.

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
    /// What kubectl's users type.
    pub short_names: &'static [&'static str],
    /// True where objects live in a namespace.
    pub namespaced: bool,
    /// Parts of an object with a path of their own, and the kind that is sent there.
    pub subresources: &'static [(&'static str, &'static str)],
    /// Field selectors besides name and namespace: the label, and where the value is found.
    pub fields: &'static [(&'static str, &'static str)],
    /// The collection that holds the objects; two kinds may be views of one.
    pub storage: &'static str,
    /// True where nothing is kept: the answer to a creation is all there is.
    pub is_review: bool,
    /// True if PUT creates a missing object.
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

    /// `pods` or `leases.coordination.k8s.io`, as messages name it.
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

    /// What can be done to the objects, in discovery's order.
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

    /// The kind in that group, version and plural.
    #[must_use]
    pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The kind of that plural, or `plural.group`: `pods`, `events.events.k8s.io`.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        let exact = KINDS.iter().find(|kind| kind.qualified() == name);
        exact.or_else(|| KINDS.iter().find(|kind| kind.plural == name))
    }

    /// True for this plural of the core group.
    pub(crate) fn is(&self, storage: &str) -> bool {
        self.storage == storage
    }

    /// True when the kind has that part.
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
    fn kinds_are_found_by_the_names_people_use() {
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
