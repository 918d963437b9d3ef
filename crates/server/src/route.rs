//! From a path to what it asks for.

use crate::{PodRef, Resource, act::Part, query::decode, status::ApiError};

/// What a path asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Version,
    CoreVersions,
    Groups,
    NodeGroup,
    CoreResources,
    NodeResources,
    Configz,
    Metrics,
    /// A health endpoint: its root, and the single check if one is named.
    Health(HealthRoot, Option<String>),
    /// A collection, perhaps one namespace of it.
    Collection(Resource, Option<String>),
    /// One object; the namespace is empty for resources without namespaces.
    Object(Resource, String, String),
    /// The log of a pod.
    Log(String, String),
    /// A part of a pod that clients may write.
    Part(PodRef, Part),
    /// The starting anew of a pod's containers.
    Restart(PodRef),
    /// Why a pod is as it is.
    Why(PodRef),
}

impl Route {
    /// What may be done at the path, as the header `Allow` has it.
    pub(crate) fn methods(&self) -> &'static str {
        match self {
            Self::Object(Resource::Pods, ..) => "GET, DELETE",
            Self::Part(..) => "GET, PATCH, PUT",
            Self::Restart(_) => "POST",
            Self::Health(..) => "GET, HEAD",
            _ => "GET",
        }
    }
}

/// Which health endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HealthRoot {
    Healthz,
    Livez,
    Readyz,
}

impl HealthRoot {
    /// The word in the path.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Healthz, Self::Livez, Self::Readyz]
            .into_iter()
            .find(|root| root.as_str() == name)
    }
}

/// Reads a path. A slash at its end makes no difference.
pub(crate) fn route(path: &str) -> Result<Route, ApiError> {
    let trimmed = path.trim_matches('/');
    let segments = trimmed
        .split('/')
        .map(|part| decode(part, false))
        .collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let found = match parts.as_slice() {
        ["version"] => Route::Version,
        ["configz"] => Route::Configz,
        ["metrics"] => Route::Metrics,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["pods"] => Route::Collection(Resource::Pods, None),
        ["api", "v1"] => Route::CoreResources,
        ["api", "v1", rest @ ..] => core(rest).ok_or_else(ApiError::unknown_path)?,
        ["apis", Resource::NODE_GROUP] => Route::NodeGroup,
        ["apis", Resource::NODE_GROUP, Resource::NODE_VERSION] => Route::NodeResources,
        [
            "apis",
            Resource::NODE_GROUP,
            Resource::NODE_VERSION,
            "manifests",
        ] => Route::Collection(Resource::Manifests, None),
        [
            "apis",
            Resource::NODE_GROUP,
            Resource::NODE_VERSION,
            "manifests",
            name,
        ] => Route::Object(Resource::Manifests, String::new(), (*name).to_owned()),
        [
            "apis",
            Resource::NODE_GROUP,
            Resource::NODE_VERSION,
            "podlifecycleevents",
        ] => Route::Collection(Resource::LifecycleEvents, None),
        [
            "apis",
            Resource::NODE_GROUP,
            Resource::NODE_VERSION,
            "namespaces",
            namespace,
            "podlifecycleevents",
            name @ ..,
        ] if name.len() < 2 => {
            let resource = Resource::LifecycleEvents;
            let namespace = (*namespace).to_owned();
            match name.first() {
                Some(name) => Route::Object(resource, namespace, (*name).to_owned()),
                None => Route::Collection(resource, Some(namespace)),
            }
        }
        [
            "apis",
            Resource::NODE_GROUP,
            Resource::NODE_VERSION,
            "namespaces",
            namespace,
            "pods",
            name,
            what,
        ] => match *what {
            "restart" => Route::Restart(pod(namespace, name)),
            "why" => Route::Why(pod(namespace, name)),
            _ => return Err(ApiError::unknown_path()),
        },
        [root] => Route::Health(health(root)?, None),
        [root, check] => Route::Health(health(root)?, Some((*check).to_owned())),
        _ => return Err(ApiError::unknown_path()),
    };
    Ok(found)
}

fn health(root: &str) -> Result<HealthRoot, ApiError> {
    HealthRoot::from_name(root).ok_or_else(ApiError::unknown_path)
}

fn pod(namespace: &str, name: &str) -> PodRef {
    PodRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn core(rest: &[&str]) -> Option<Route> {
    let resource = |plural: &str| match plural {
        "pods" => Some(Resource::Pods),
        "events" => Some(Resource::Events),
        _ => None,
    };
    Some(match *rest {
        [plural] => Route::Collection(resource(plural)?, None),
        ["namespaces", namespace, plural] => {
            Route::Collection(resource(plural)?, Some(namespace.to_owned()))
        }
        ["namespaces", namespace, plural, name] => {
            Route::Object(resource(plural)?, namespace.to_owned(), name.to_owned())
        }
        ["namespaces", namespace, "pods", name, "log"] => {
            Route::Log(namespace.to_owned(), name.to_owned())
        }
        ["namespaces", namespace, "pods", name, "status"] => {
            Route::Part(pod(namespace, name), Part::Status)
        }
        ["namespaces", namespace, "pods", name, "ephemeralcontainers"] => {
            Route::Part(pod(namespace, name), Part::Ephemeral)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_api_are_understood() {
        let object = |resource, namespace: &str, name: &str| {
            Route::Object(resource, namespace.to_owned(), name.to_owned())
        };
        for (path, expected) in [
            ("/version", Route::Version),
            ("/metrics", Route::Metrics),
            ("/api", Route::CoreVersions),
            ("/apis/", Route::Groups),
            ("/api/v1", Route::CoreResources),
            ("/api/v1/pods", Route::Collection(Resource::Pods, None)),
            ("/pods/", Route::Collection(Resource::Pods, None)),
            (
                "/api/v1/namespaces/default/events",
                Route::Collection(Resource::Events, Some("default".to_owned())),
            ),
            (
                "/api/v1/namespaces/a/pods/b",
                object(Resource::Pods, "a", "b"),
            ),
            (
                "/api/v1/namespaces/a/pods/b/log",
                Route::Log("a".to_owned(), "b".to_owned()),
            ),
            (
                "/api/v1/namespaces/a/pods/b/status",
                Route::Part(pod("a", "b"), Part::Status),
            ),
            (
                "/api/v1/namespaces/a/pods/b/ephemeralcontainers",
                Route::Part(pod("a", "b"), Part::Ephemeral),
            ),
            (
                "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/restart",
                Route::Restart(pod("a", "b")),
            ),
            (
                "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/why",
                Route::Why(pod("a", "b")),
            ),
            (
                "/apis/node.rubelet.dev/v1alpha1/manifests/a%2Fb.yaml",
                object(Resource::Manifests, "", "a/b.yaml"),
            ),
            (
                "/apis/node.rubelet.dev/v1alpha1/podlifecycleevents",
                Route::Collection(Resource::LifecycleEvents, None),
            ),
            (
                "/apis/node.rubelet.dev/v1alpha1/namespaces/a/podlifecycleevents",
                Route::Collection(Resource::LifecycleEvents, Some("a".to_owned())),
            ),
            (
                "/apis/node.rubelet.dev/v1alpha1/namespaces/a/podlifecycleevents/7",
                object(Resource::LifecycleEvents, "a", "7"),
            ),
            ("/healthz", Route::Health(HealthRoot::Healthz, None)),
            (
                "/healthz/syncloop",
                Route::Health(HealthRoot::Healthz, Some("syncloop".to_owned())),
            ),
        ] {
            assert_eq!(route(path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn other_paths_are_not_found() {
        for path in [
            "/",
            "",
            "/api/v1/nodes",
            "/api/v2",
            "/apis/apps/v1",
            "/healthz/a/b",
            "/api/v1/namespaces/a/events/b/status",
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/x",
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/podlifecycleevents/7/x",
            "/x",
        ] {
            assert_eq!(
                route(path).map_err(|error| error.code.as_u16()),
                Err(404),
                "{path}"
            );
        }
        assert_eq!(
            route("/api/v1/%zz").map_err(|error| error.code.as_u16()),
            Err(400)
        );
    }
}
