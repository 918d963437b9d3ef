//! The kinds of objects that are served, and their names in the API.

/// A collection of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// v1 Pod.
    Pods,
    /// v1 Event.
    Events,
    /// node.rubelet.dev/v1alpha1 Manifest: a manifest file or URL and its state.
    Manifests,
    /// node.rubelet.dev/v1alpha1 PodLifecycleEvent: what PLEG reported to a pod's task.
    LifecycleEvents,
}

impl Resource {
    /// Every resource, in the order of discovery.
    pub const ALL: [Self; 4] = [
        Self::Events,
        Self::Pods,
        Self::Manifests,
        Self::LifecycleEvents,
    ];

    /// The API group of resources that only this agent has.
    pub const NODE_GROUP: &'static str = "node.rubelet.dev";

    /// The version of [`Resource::NODE_GROUP`].
    pub const NODE_VERSION: &'static str = "v1alpha1";

    /// The name in paths: `pods`.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Events => "events",
            Self::Manifests => "manifests",
            Self::LifecycleEvents => "podlifecycleevents",
        }
    }

    /// The name of one object, as `-o name` prints it: `pod`.
    #[must_use]
    pub fn singular(self) -> &'static str {
        match self {
            Self::Pods => "pod",
            Self::Events => "event",
            Self::Manifests => "manifest",
            Self::LifecycleEvents => "podlifecycleevent",
        }
    }

    /// The short name that kubectl accepts: `po`.
    #[must_use]
    pub fn short_name(self) -> &'static str {
        match self {
            Self::Pods => "po",
            Self::Events => "ev",
            Self::Manifests => "mf",
            Self::LifecycleEvents => "ple",
        }
    }

    /// `kind` of one object.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Pods => "Pod",
            Self::Events => "Event",
            Self::Manifests => "Manifest",
            Self::LifecycleEvents => "PodLifecycleEvent",
        }
    }

    /// `apiVersion` of one object.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Pods | Self::Events => "v1",
            Self::Manifests | Self::LifecycleEvents => "node.rubelet.dev/v1alpha1",
        }
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::Pods | Self::Events => "",
            Self::Manifests | Self::LifecycleEvents => Self::NODE_GROUP,
        }
    }

    /// True where objects live in a namespace.
    #[must_use]
    pub fn namespaced(self) -> bool {
        !matches!(self, Self::Manifests)
    }

    /// The resource of that plural, singular or short name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| {
            [
                resource.plural(),
                resource.singular(),
                resource.short_name(),
            ]
            .contains(&name)
        })
    }

    /// `pods`, or `manifests.node.rubelet.dev`: how the API server's messages name it.
    #[must_use]
    pub fn qualified(self) -> String {
        match self.group() {
            "" => self.plural().to_owned(),
            group => format!("{}.{group}", self.plural()),
        }
    }

    /// The path of the whole collection, or of one namespace of it.
    #[must_use]
    pub fn path(self, namespace: Option<&str>) -> String {
        let root = match self {
            Self::Pods | Self::Events => "/api/v1",
            Self::Manifests | Self::LifecycleEvents => "/apis/node.rubelet.dev/v1alpha1",
        };
        match namespace {
            Some(namespace) if self.namespaced() => {
                format!("{root}/namespaces/{namespace}/{}", self.plural())
            }
            _ => format!("{root}/{}", self.plural()),
        }
    }
}
