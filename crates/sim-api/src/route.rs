//! Routes of paths.

use crate::{Kind, StatusError, query::decode};

/// The route of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Objects.
    Objects(Target),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    Resources { group: String, version: String },
    /// `/version`.
    Version,
    /// `/openapi/v2`.
    OpenApi,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
}

/// A collection, an object in it, or a subresource of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    /// `None` if cluster-scoped, and for lists of all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The rest of the path after the subresource, such as a proxied path.
    pub(crate) rest: String,
}

impl Target {
    /// The whole collection.
    pub(crate) fn collection(kind: &'static Kind, namespace: Option<&str>) -> Self {
        Self {
            kind,
            namespace: namespace.map(str::to_owned),
            name: None,
            subresource: None,
            rest: String::new(),
        }
    }

    /// One object; the namespace is empty for cluster-scoped ones.
    pub(crate) fn object(kind: &'static Kind, namespace: &str, name: &str) -> Self {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        Self {
            name: Some(name.to_owned()),
            ..Self::collection(kind, namespace)
        }
    }

    pub(crate) fn subresource(&self) -> &str {
        self.subresource.as_deref().unwrap_or_default()
    }

    /// The namespace; empty for none.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The name; empty for none.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// `pods`, `pods/status`.
    pub(crate) fn resource(&self) -> String {
        match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.kind.plural),
            None => self.kind.plural.to_owned(),
        }
    }
}

/// Parses a path.
pub(crate) fn route(path: &str) -> Result<Route, StatusError> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let segments = segments
        .map(|segment| decode(segment, false))
        .collect::<Result<Vec<_>, _>>()?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Ok(Route::Health),
        ["version"] => Ok(Route::Version),
        ["openapi", "v2"] => Ok(Route::OpenApi),
        ["api"] => Ok(Route::CoreVersions),
        ["apis"] => Ok(Route::Groups),
        ["apis", group] => Ok(Route::Group((*group).to_owned())),
        ["api", version] => Ok(resources("", version)),
        ["apis", group, version] => Ok(resources(group, version)),
        ["api", version, rest @ ..] => objects("", version, rest),
        ["apis", group, version, rest @ ..] => objects(group, version, rest),
        _ => Err(StatusError::unknown_path()),
    }
}

fn resources(group: &str, version: &str) -> Route {
    Route::Resources {
        group: group.to_owned(),
        version: version.to_owned(),
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Result<Route, StatusError> {
    let kind = |plural| Kind::find(group, version, plural).ok_or_else(StatusError::unknown_path);
    let (kind, namespace, below) = match rest {
        // Subresources of a namespace, not collections in it.
        ["namespaces", name, part @ ("status" | "finalize")] => {
            return Ok(Route::Objects(Target {
                subresource: Some((*part).to_owned()),
                ..Target::object(kind("namespaces")?, "", name)
            }));
        }
        ["namespaces", namespace, plural, below @ ..] => {
            let kind = kind(plural)?;
            if !kind.namespaced {
                return Err(StatusError::unknown_path());
            }
            (kind, Some(*namespace), below)
        }
        [plural, below @ ..] => (kind(plural)?, None, below),
        [] => return Err(StatusError::unknown_path()),
    };
    if kind.namespaced && namespace.is_none() && !below.is_empty() {
        return Err(StatusError::unknown_path());
    }
    let mut target = Target::collection(kind, namespace);
    let mut below = below.iter();
    target.name = below.next().map(|name| (*name).to_owned());
    if let Some(subresource) = below.next() {
        if !kind.has(subresource) {
            return Err(StatusError::unknown_path());
        }
        target.subresource = Some((*subresource).to_owned());
    }
    let rest: Vec<&str> = below.copied().collect();
    if !rest.is_empty() && target.subresource() != "proxy" {
        return Err(StatusError::unknown_path());
    }
    target.rest = rest.join("/");
    Ok(Route::Objects(target))
}

#[cfg(test)]
mod tests;
