//! From a path to what it requests.

use rubelet_http_core::{query::decode, resource::Resource, status::ApiError};
use rubelet_streaming::SessionKind;

use crate::{PodRef, act::Part, health::HealthRoot};

/// The target of a request's path.
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
    /// Resource usage of the node and its pods.
    StatsSummary,
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
    /// A restart of a pod's containers.
    Restart(PodRef),
    /// The explanation of a pod's state.
    Why(PodRef),
    /// A session with a pod.
    Session(PodRef, SessionKind),
    /// Files of a container of a pod.
    Files(PodRef),
    /// A probe of the network from inside a pod.
    Net(PodRef),
}

impl Route {
    /// The methods that the path allows, as in the header `Allow`.
    pub(crate) fn methods(&self) -> &'static str {
        match self {
            Self::Object(Resource::Pods, ..) => "GET, DELETE",
            Self::Part(..) => "GET, PATCH, PUT",
            Self::Restart(_) | Self::Net(_) => "POST",
            Self::Session(..) => "GET, POST",
            Self::Files(_) => "GET, PUT",
            Self::Health(..) => "GET, HEAD",
            _ => "GET",
        }
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
        ["stats", "summary"] => Route::StatsSummary,
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
            "net" => Route::Net(pod(namespace, name)),
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
        ["namespaces", namespace, "pods", name, "exec"] => {
            Route::Session(pod(namespace, name), SessionKind::Exec)
        }
        ["namespaces", namespace, "pods", name, "attach"] => {
            Route::Session(pod(namespace, name), SessionKind::Attach)
        }
        ["namespaces", namespace, "pods", name, "portforward"] => {
            Route::Session(pod(namespace, name), SessionKind::PortForward)
        }
        ["namespaces", namespace, "pods", name, "files"] => Route::Files(pod(namespace, name)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
