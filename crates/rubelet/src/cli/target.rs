//! What a command is about: a resource, and which one of it. `pod web`, `pod/web` and `po/we` are
//! the same, as long as only one pod's name begins so.

use anyhow::anyhow;
use rubelet_server::Resource;
use serde_json::Value;

use super::{
    agent::{Agent, collection},
    failure::Failure,
    get::find,
    url::Url,
};

/// Which namespace a command looks at.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamespaceArgs {
    /// Namespace to look at
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// Look at all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

impl NamespaceArgs {
    /// The option that names the namespace again, after a blank; nothing for the default one.
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
    /// Pod: NAME, pod/NAME, or the beginning of a name
    #[arg(value_name = "POD", required = true, num_args = 1..=2)]
    pod: Vec<String>,
}

impl PodArg {
    /// The name that was given: `NAME`, `pod/NAME` or `pod NAME`.
    pub(super) fn name(&self) -> Result<&str, Failure> {
        match self.pod.as_slice() {
            [kind, name] if Resource::from_name(kind) == Some(Resource::Pods) => parse_pod(name),
            [first, second] => Err(Failure::Usage(format!(
                "give one pod, not {first:?} and {second:?}"
            ))),
            [name] => parse_pod(name),
            _ => Err(Failure::Usage("the name of the pod is missing".to_owned())),
        }
    }

    /// The pod that is meant.
    pub(super) async fn find(
        &self,
        agent: &Agent,
        namespace: Option<&str>,
    ) -> Result<Value, Failure> {
        let wanted = self.name()?;
        let pods = agent.list(&collection(Resource::Pods, namespace)).await?;
        find(agent, Resource::Pods, &pods, wanted, namespace).await
    }
}

/// The path of one pod, or of a part of it.
pub(super) fn pod_path(pod: &Value, part: &str) -> Url {
    let url = Url::new(&Resource::Pods.path(Some(namespace_of(pod)))).segment(name_of(pod));
    if part.is_empty() {
        url
    } else {
        url.segment(part)
    }
}

/// The path of something that only this agent offers for a pod.
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
) -> Result<(Resource, Option<String>), Failure> {
    let (kind, inline) = match resource.split_once('/') {
        Some((kind, inline)) => (kind, Some(inline)),
        None => (resource, None),
    };
    let known = Resource::from_name(kind).ok_or_else(|| {
        Failure::Usage(format!(
            "there is no resource {kind:?}; known are pods (po), events (ev) and manifests (mf)"
        ))
    })?;
    let name = match (inline, name) {
        (Some(_), Some(name)) => {
            let message = format!("give one name, not {resource:?} and {name:?}");
            return Err(Failure::Usage(message));
        }
        (Some(inline), None) => Some(inline),
        (None, Some(name)) => Some(strip_kind(known, name)?),
        (None, None) => None,
    };
    match name {
        Some("") => Err(Failure::Usage(format!(
            "a name is missing after {resource:?}"
        ))),
        name => Ok((known, name.map(str::to_owned))),
    }
}

/// Splits `RESOURCE [NAME...]` or `RESOURCE/NAME...`.
pub(super) fn parse_several(
    resource: &str,
    names: &[String],
) -> Result<(Resource, Vec<String>), Failure> {
    let (first, rest, inline) = match (resource.contains('/'), names) {
        (true, rest) => (None, rest, true),
        (false, [first, rest @ ..]) => (Some(first.as_str()), rest, false),
        (false, []) => (None, names, false),
    };
    let (known, name) = parse(resource, first)?;
    let mut found: Vec<String> = name.into_iter().collect();
    for name in rest {
        // Behind `pod/web`, a bare `db` may as well be the slip of somebody who meant one pod.
        if inline && !name.contains('/') {
            let message = format!("give names in one form, not {resource:?} and {name:?}");
            return Err(Failure::Usage(message));
        }
        let (_, name) = parse(known.plural(), Some(name))?;
        found.extend(name);
    }
    Ok((known, found))
}

/// Reads `NAME` or `pod/NAME` where only a pod can be meant.
pub(super) fn parse_pod(name: &str) -> Result<&str, Failure> {
    match strip_kind(Resource::Pods, name)? {
        "" => Err(Failure::Usage("the name of the pod is empty".to_owned())),
        name => Ok(name),
    }
}

fn strip_kind(resource: Resource, name: &str) -> Result<&str, Failure> {
    match name.split_once('/') {
        // Names of manifests may hold slashes, names of pods and events never do.
        Some((kind, rest)) if Resource::from_name(kind) == Some(resource) => Ok(rest),
        Some((kind, _)) if resource != Resource::Manifests => Err(Failure::Usage(format!(
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

/// Picks the object that is meant: of exactly that name, else the static pod of that name on its
/// node or the manifest of that file name, else the only one whose name begins so.
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

/// What people call the object: a static pod without its node, a manifest without its folder.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_name_a_resource_is_understood() {
        for (resource, name, expected) in [
            ("pods", None, (Resource::Pods, None)),
            ("po", Some("web"), (Resource::Pods, Some("web"))),
            ("pod/web", None, (Resource::Pods, Some("web"))),
            ("pod", Some("pods/web"), (Resource::Pods, Some("web"))),
            (
                "mf",
                Some("a/b.yaml"),
                (Resource::Manifests, Some("a/b.yaml")),
            ),
            ("ev", None, (Resource::Events, None)),
        ] {
            let parsed = parse(resource, name).expect(resource);
            assert_eq!(parsed, (expected.0, expected.1.map(str::to_owned)));
        }
        for (resource, name) in [
            ("nodes", None),
            ("pod/web", Some("db")),
            ("pod/", None),
            ("pod", Some("event/x")),
            ("pod", Some("")),
        ] {
            assert!(
                matches!(parse(resource, name), Err(Failure::Usage(_))),
                "{resource} {name:?}"
            );
        }
    }

    #[test]
    fn several_names_are_of_one_kind_and_in_one_form() {
        let parsed = |resource: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            parse_several(resource, &names).map(|(_, names)| names)
        };
        for (resource, names, expected) in [
            ("pods", &[] as &[&str], &[] as &[&str]),
            ("pods", &["web", "db"], &["web", "db"]),
            ("pod/web", &["po/db"], &["web", "db"]),
            ("mf", &["a/b.yaml", "c.yaml"], &["a/b.yaml", "c.yaml"]),
        ] {
            assert_eq!(parsed(resource, names).expect(resource), expected);
        }
        for (resource, names) in [
            ("pod/web", &["db"] as &[&str]),
            ("pods", &["web", "event/x"]),
            ("pods", &["web", ""]),
        ] {
            assert!(
                matches!(parsed(resource, names), Err(Failure::Usage(_))),
                "{resource} {names:?}"
            );
        }
    }

    #[test]
    fn a_pod_is_named_in_one_word_or_two() {
        let named = |words: &[&str]| {
            let pod = words.iter().map(|word| (*word).to_owned()).collect();
            PodArg { pod }.name().map(str::to_owned)
        };
        for words in [
            &["web"] as &[&str],
            &["pod/web"],
            &["pods/web"],
            &["po/web"],
            &["pod", "web"],
            &["pods", "pod/web"],
        ] {
            assert_eq!(named(words).expect("a name"), "web", "{words:?}");
        }
        for words in [
            &["pod/"] as &[&str],
            &["event/x"],
            &["event", "x"],
            &["web", "db"],
            &["pod", ""],
        ] {
            assert!(matches!(named(words), Err(Failure::Usage(_))), "{words:?}");
        }
    }

    #[test]
    fn names_are_completed_when_only_one_fits() {
        let pod = |name: &str| {
            json!({ "metadata": { "name": name, "namespace": "default" },
                    "spec": { "nodeName": "n1" } })
        };
        let pods = ["web-n1", "web2-n1", "web2-canary-n1", "db-n1", "db-n1-x"].map(pod);
        let found = |wanted: &str| pick(Resource::Pods, &pods, wanted).map(|p| p.map(name_of));
        for (wanted, name) in [
            ("web-n1", Some("web-n1")),
            ("web", Some("web-n1")),
            ("web2", Some("web2-n1")),
            ("web2-c", Some("web2-canary-n1")),
            ("db-n1", Some("db-n1")),
            ("x", None),
        ] {
            assert_eq!(found(wanted).expect(wanted), name);
        }
        let manifests = ["/m/web.yaml", "/m/db.yaml"];
        let manifests = manifests.map(|name| json!({ "metadata": { "name": name } }));
        for wanted in ["/m/web.yaml", "web.yaml", "web", "/m/w"] {
            let found = pick(Resource::Manifests, &manifests, wanted).expect(wanted);
            assert_eq!(found.map(name_of), Some("/m/web.yaml"), "{wanted}");
        }
        assert_eq!(
            found("we").expect_err("several").to_string(),
            r#"pod "we" is ambiguous; it may be web-n1, web2-n1, web2-canary-n1"#
        );
    }
}
