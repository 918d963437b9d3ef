//! The target of a command: a resource, and an object of it. `pod web`, `pod/web` and `po/we`
//! are the same if only one pod's name begins with `we`.

use anyhow::anyhow;
use rubelet_server::Resource;
use serde_json::Value;

use super::{
    agent::{Agent, Objects, collection},
    failure::CommandError,
    url::Url,
};

/// Which namespace a command looks at.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamespaceArgs {
    /// Namespace
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

impl NamespaceArgs {
    /// The option that repeats the namespace, after a space; empty for the default namespace.
    pub(super) fn option(&self) -> String {
        match self.namespace.as_str() {
            "default" => String::new(),
            other => format!(" -n {other}"),
        }
    }

    /// The namespace; `None` means all.
    pub(super) fn namespace(&self) -> Option<&str> {
        (!self.all_namespaces).then_some(self.namespace.as_str())
    }
}

/// Which pod a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PodArg {
    /// Pod: NAME, pod/NAME, or a unique prefix of its name
    #[arg(value_name = "POD", required = true, num_args = 1..=2)]
    pod: Vec<String>,
}

impl PodArg {
    /// The given name: `NAME`, `pod/NAME` or `pod NAME`.
    pub(super) fn name(&self) -> Result<&str, CommandError> {
        match self.pod.as_slice() {
            [kind, name] if Resource::from_name(kind) == Some(Resource::Pods) => parse_pod(name),
            [first, second] => Err(CommandError::Usage(format!(
                "give one pod, not {first:?} and {second:?}"
            ))),
            [name] => parse_pod(name),
            _ => Err(CommandError::Usage(
                "the name of the pod is missing".to_owned(),
            )),
        }
    }

    /// The selected pod.
    pub(super) async fn find(
        &self,
        agent: &Agent,
        namespace: Option<&str>,
    ) -> Result<Value, CommandError> {
        find_pod(agent, self.name()?, namespace).await
    }
}

/// The pod of that name, or with a unique prefix of it.
pub(super) async fn find_pod(
    agent: &Agent,
    wanted: &str,
    namespace: Option<&str>,
) -> Result<Value, CommandError> {
    let pods = agent.list(&collection(Resource::Pods, namespace)).await?;
    find(agent, Resource::Pods, &pods, wanted, namespace).await
}

/// The path of a pod, or of a subresource of it.
pub(super) fn pod_path(pod: &Value, part: &str) -> Url {
    let url = Url::new(&Resource::Pods.path(Some(namespace_of(pod)))).segment(name_of(pod));
    if part.is_empty() {
        url
    } else {
        url.segment(part)
    }
}

/// The path of a subresource that only this agent has.
pub(super) fn pod_url(pod: &Value, what: &str) -> Url {
    let (group, version) = (Resource::NODE_GROUP, Resource::NODE_VERSION);
    Url::new(&format!("/apis/{group}/{version}/namespaces"))
        .segment(namespace_of(pod))
        .segment("pods")
        .segment(name_of(pod))
        .segment(what)
}

/// Splits `RESOURCE [NAME]` or `RESOURCE/NAME`.
pub(super) fn parse(
    resource: &str,
    name: Option<&str>,
) -> Result<(Resource, Option<String>), CommandError> {
    let (kind, inline) = match resource.split_once('/') {
        Some((kind, inline)) => (kind, Some(inline)),
        None => (resource, None),
    };
    let known = Resource::from_name(kind).ok_or_else(|| {
        CommandError::Usage(format!(
            "unknown resource {kind:?}: use pods (po), events (ev) or manifests (mf)"
        ))
    })?;
    let name = match (inline, name) {
        (Some(_), Some(name)) => {
            let message = format!("give one name, not {resource:?} and {name:?}");
            return Err(CommandError::Usage(message));
        }
        (Some(inline), None) => Some(inline),
        (None, Some(name)) => Some(strip_kind(known, name)?),
        (None, None) => None,
    };
    match name {
        Some("") => Err(CommandError::Usage(format!(
            "a name is missing after {resource:?}"
        ))),
        name => Ok((known, name.map(str::to_owned))),
    }
}

/// Splits `RESOURCE [NAME...]` or `RESOURCE/NAME...`.
pub(super) fn parse_several(
    resource: &str,
    names: &[String],
) -> Result<(Resource, Vec<String>), CommandError> {
    let (first, rest, inline) = match (resource.contains('/'), names) {
        (true, rest) => (None, rest, true),
        (false, [first, rest @ ..]) => (Some(first.as_str()), rest, false),
        (false, []) => (None, names, false),
    };
    let (known, name) = parse(resource, first)?;
    let mut found: Vec<String> = name.into_iter().collect();
    for name in rest {
        // After `pod/web`, a bare `db` may as well be a typo by a user who meant one pod.
        if inline && !name.contains('/') {
            let message = format!("give names in one form, not {resource:?} and {name:?}");
            return Err(CommandError::Usage(message));
        }
        let (_, name) = parse(known.plural(), Some(name))?;
        found.extend(name);
    }
    Ok((known, found))
}

/// Reads `NAME` or `pod/NAME` where only a pod is allowed.
pub(super) fn parse_pod(name: &str) -> Result<&str, CommandError> {
    match strip_kind(Resource::Pods, name)? {
        "" => Err(CommandError::Usage(
            "the name of the pod is empty".to_owned(),
        )),
        name => Ok(name),
    }
}

fn strip_kind(resource: Resource, name: &str) -> Result<&str, CommandError> {
    match name.split_once('/') {
        // Names of manifests may contain slashes, names of pods and events never do.
        Some((kind, rest)) if Resource::from_name(kind) == Some(resource) => Ok(rest),
        Some((kind, _)) if resource != Resource::Manifests => Err(CommandError::Usage(format!(
            "{name:?} is no {}: {kind:?} stands before the slash",
            resource.singular()
        ))),
        _ => Ok(name),
    }
}

/// `metadata.name`.
pub(super) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// `metadata.namespace`.
pub(super) fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// Picks the selected object: of exactly that name, else the static pod of that name on its node or
/// the manifest of that file name, else the only one whose name has that prefix.
pub(super) fn pick<'a>(
    resource: Resource,
    objects: &'a [Value],
    wanted: &str,
) -> anyhow::Result<Option<&'a Value>> {
    let ranks: [&dyn Fn(&Value) -> bool; 3] = [
        &|object| name_of(object) == wanted,
        &|object| short_name(resource, object) == Some(wanted),
        &|object| {
            let short = short_name(resource, object);
            name_of(object).starts_with(wanted)
                || short.is_some_and(|short| short.starts_with(wanted))
        },
    ];
    for fits in ranks {
        let found: Vec<&Value> = objects.iter().filter(|object| fits(object)).collect();
        match found.as_slice() {
            [] => {}
            [only] => return Ok(Some(only)),
            several => return Err(ambiguous(resource, wanted, several)),
        }
    }
    Ok(None)
}

/// The common name of the object: a static pod without its node, a manifest without its directory.
fn short_name(resource: Resource, object: &Value) -> Option<&str> {
    let name = name_of(object);
    match resource {
        Resource::Pods => {
            let node = object["spec"]["nodeName"].as_str()?;
            name.strip_suffix(node)?.strip_suffix('-')
        }
        Resource::Manifests => name.rsplit_once('/').map(|(_, file)| file),
        Resource::Events | Resource::LifecycleEvents => None,
    }
}

fn ambiguous(resource: Resource, wanted: &str, several: &[&Value]) -> anyhow::Error {
    let one_namespace = several
        .windows(2)
        .all(|pair| namespace_of(pair[0]) == namespace_of(pair[1]));
    let full = |object: &Value| match (namespace_of(object), name_of(object)) {
        (namespace, name) if !one_namespace => format!("{namespace}/{name}"),
        (_, name) => name.to_owned(),
    };
    let names: Vec<String> = several.iter().map(|object| full(object)).collect();
    anyhow!(
        "{} {wanted:?} is ambiguous; it may be {}",
        resource.singular(),
        names.join(", ")
    )
}

/// The object that a name selects, or an error that says in which other namespace there is one.
pub(super) async fn find(
    agent: &Agent,
    resource: Resource,
    objects: &Objects,
    wanted: &str,
    namespace: Option<&str>,
) -> Result<Value, CommandError> {
    if let Some(object) = pick(resource, &objects.items, wanted)? {
        return Ok(object.clone());
    }
    let plural = resource.plural();
    let Some(namespace) = namespace else {
        return Err(anyhow!("{plural} {wanted:?} not found").into());
    };
    let everywhere = agent.list(&collection(resource, None)).await?.items;
    let mut elsewhere: Vec<String> = everywhere
        .iter()
        .filter(|object| name_of(object).starts_with(wanted))
        .map(|object| format!("{}/{}", namespace_of(object), name_of(object)))
        .collect();
    elsewhere.truncate(5);
    let hint = match elsewhere.as_slice() {
        [] => String::new(),
        names => format!("; there is {} (use -n)", names.join(", ")),
    };
    Err(anyhow!("{plural} {wanted:?} not found in namespace {namespace:?}{hint}").into())
}

#[cfg(test)]
mod tests;
