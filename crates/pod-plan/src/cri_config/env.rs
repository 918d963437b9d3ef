//! The environment of a container: services, config maps and secrets, literals, the downward API
//! and `$(VAR)` references.

use std::collections::BTreeMap;

use rubelet_api::{
    container::{Container, EnvFrom, EnvValue, FieldPath, FileKeyRef, KeyRef, ObjectKind},
    downward::{self, Allocatable, NoSuchContainer},
    objects::{ObjectData, PodObjects},
    pod::Pod,
};

use super::{
    env_file::{self, EnvFileError},
    expand::expand,
};

/// Values of the node that a variable may refer to.
#[derive(Debug, Clone, Default)]
pub struct EnvContext {
    /// Addresses of the node, the primary one first.
    pub node_ips: Vec<Box<str>>,
    /// Addresses of the pod, the primary one first.
    pub pod_ips: Vec<Box<str>>,
    /// Allocatable thousandths of a core; replaces a missing limit.
    pub allocatable_cpu: u64,
    /// Allocatable bytes of memory; replaces a missing limit.
    pub allocatable_memory: u64,
    /// The contents of env files.
    pub files: EnvFiles,
}

/// Contents of env files, by volume and path; `None` for a missing file.
pub type EnvFiles = BTreeMap<(Box<str>, Box<str>), Option<String>>;

/// A variable that can't be given a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// `resourceFieldRef.containerName` names no container of the pod.
    #[error(transparent)]
    NoSuchContainer(#[from] NoSuchContainer),
    /// `status.hostIP` or `status.hostIPs` of a node without addresses.
    #[error("host IP unknown: the node has no address yet")]
    NoHostIp,
    /// A config map or secret that is not optional does not exist.
    #[error("{} \"{name}\" not found", match kind {
        ObjectKind::ConfigMap => "configmap",
        ObjectKind::Secret => "secret",
    })]
    NotFound {
        /// Its kind.
        kind: ObjectKind,
        /// Its name.
        name: Box<str>,
    },
    /// An env file is malformed.
    #[error("couldn't parse env file {path:?} of the volume {volume:?}: {source}")]
    File {
        /// The volume.
        volume: Box<str>,
        /// The file in it.
        path: Box<str>,
        /// The syntax error.
        source: EnvFileError,
    },
    /// An env file is missing, or lacks a variable that is not optional.
    #[error("environment variable key {key:?} not found in file {path:?} of the volume {volume:?}")]
    NotInFile {
        /// The volume.
        volume: Box<str>,
        /// The file in it.
        path: Box<str>,
        /// The key.
        key: Box<str>,
    },
    /// A config map or secret lacks a key that is not optional.
    #[error("couldn't find key {key} in {} {namespace}/{name}", match kind {
        ObjectKind::ConfigMap => "ConfigMap",
        ObjectKind::Secret => "Secret",
    })]
    NoSuchKey {
        /// Its kind.
        kind: ObjectKind,
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
        /// The key.
        key: Box<str>,
    },
}

/// The environment of a container: `envFrom`, then `env` in the order of the specification, where
/// the later of two equal names wins; then service variables whose names are not set yet. A
/// reference in a literal can use the variables before it and all service variables.
///
/// # Errors
/// See [`EnvError`].
pub fn environment(
    pod: &Pod,
    container: &Container,
    context: &EnvContext,
    objects: &PodObjects,
) -> Result<Vec<(String, String)>, EnvError> {
    let mut values: Vec<(String, String)> = Vec::with_capacity(container.env.len());
    for source in &container.env_from {
        take_all(source, objects, &mut values)?;
    }
    for variable in &container.env {
        let value = match &variable.value {
            EnvValue::Literal(text) => expand(text, |name| {
                lookup(&values, name).or_else(|| lookup(&objects.services, name))
            }),
            EnvValue::Field(FieldPath::HostIp | FieldPath::HostIps)
                if context.node_ips.is_empty() =>
            {
                return Err(EnvError::NoHostIp);
            }
            EnvValue::Field(path) => field(pod, path, context),
            EnvValue::Resource(reference) => {
                let allocatable = Allocatable {
                    cpu: context.allocatable_cpu,
                    memory: context.allocatable_memory,
                };
                downward::resource(pod, Some(container), reference, allocatable)?
            }
            EnvValue::ConfigMapKey(reference) => {
                match key(pod, ObjectKind::ConfigMap, reference, objects)? {
                    Some(value) => value,
                    None => continue,
                }
            }
            EnvValue::FileKey(reference) => match file_key(reference, &context.files)? {
                Some(value) => value,
                None => continue,
            },
            EnvValue::SecretKey(reference) => {
                match key(pod, ObjectKind::Secret, reference, objects)? {
                    Some(value) => value,
                    None => continue,
                }
            }
        };
        set(&mut values, &variable.name, value);
    }
    for (name, value) in &objects.services {
        if lookup(&values, name).is_none() {
            values.push((name.clone(), value.clone()));
        }
    }
    Ok(values)
}

fn set(values: &mut Vec<(String, String)>, name: &str, value: String) {
    match values.iter_mut().find(|(key, _)| key == name) {
        Some(slot) => slot.1 = value,
        None => values.push((name.to_owned(), value)),
    }
}

/// The `data` of an object, without `binaryData`.
fn data<'a>(kind: ObjectKind, name: &str, objects: &'a PodObjects) -> Option<&'a ObjectData> {
    match kind {
        ObjectKind::ConfigMap => objects.config_maps.get(name).map(|object| &object.data),
        ObjectKind::Secret => objects.secrets.get(name).map(|object| &object.data),
    }
}

/// Invalid UTF-8 is replaced: the runtime's configuration is JSON and can't hold other bytes.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn take_all(
    source: &EnvFrom,
    objects: &PodObjects,
    values: &mut Vec<(String, String)>,
) -> Result<(), EnvError> {
    let Some(data) = data(source.kind, &source.name, objects) else {
        if source.optional {
            return Ok(());
        }
        return Err(EnvError::NotFound {
            kind: source.kind,
            name: source.name.clone(),
        });
    };
    for (key, value) in data {
        set(values, &format!("{}{key}", source.prefix), text(value));
    }
    Ok(())
}

/// The value of a key; `None` if it is missing and optional.
fn key(
    pod: &Pod,
    kind: ObjectKind,
    reference: &KeyRef,
    objects: &PodObjects,
) -> Result<Option<String>, EnvError> {
    let data = data(kind, &reference.object, objects);
    if let Some(value) = data.and_then(|data| data.get(&reference.key)) {
        return Ok(Some(text(value)));
    }
    if reference.optional {
        return Ok(None);
    }
    let name = reference.object.clone();
    Err(match data {
        None => EnvError::NotFound { kind, name },
        Some(_) => EnvError::NoSuchKey {
            kind,
            namespace: (*pod.name.namespace).into(),
            name,
            key: reference.key.clone(),
        },
    })
}

/// The value of a variable in an env file; `None` if it is missing and optional.
fn file_key(reference: &FileKeyRef, files: &EnvFiles) -> Result<Option<String>, EnvError> {
    let at = (reference.volume.clone(), reference.path.clone());
    let text = files
        .get(&at)
        .and_then(Option::as_deref)
        .unwrap_or_default();
    let value = env_file::value(text, &reference.key).map_err(|source| EnvError::File {
        volume: reference.volume.clone(),
        path: reference.path.clone(),
        source,
    })?;
    if value.is_some() || reference.optional {
        return Ok(value);
    }
    Err(EnvError::NotInFile {
        volume: reference.volume.clone(),
        path: reference.path.clone(),
        key: reference.key.clone(),
    })
}

/// The value of a variable in a list.
#[must_use]
pub fn lookup<'a>(values: &'a [(String, String)], name: &str) -> Option<&'a str> {
    values
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

fn field(pod: &Pod, path: &FieldPath, context: &EnvContext) -> String {
    let first = |ips: &[Box<str>]| ips.first().map(ToString::to_string).unwrap_or_default();
    match path {
        FieldPath::NodeName => pod.spec.node_name.to_string(),
        FieldPath::ServiceAccountName => pod.spec.service_account.to_string(),
        FieldPath::HostIp => first(&context.node_ips),
        FieldPath::HostIps => context.node_ips.join(","),
        FieldPath::PodIp => first(&context.pod_ips),
        FieldPath::PodIps => context.pod_ips.join(","),
        of_metadata => downward::metadata(pod, of_metadata).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
