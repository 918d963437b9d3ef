//! The environment of a container: literals, the downward API and `$(VAR)` references.

use rubelet_api::{
    container::{Container, EnvValue, FieldPath, ResourceField, ResourceName},
    pod::Pod,
};

use super::expand::expand;

/// What the node knows that a variable may ask for.
#[derive(Debug, Clone, Default)]
pub struct EnvContext {
    /// Addresses of the node, the primary one first.
    pub node_ips: Vec<Box<str>>,
    /// Addresses of the pod, the primary one first.
    pub pod_ips: Vec<Box<str>>,
    /// Thousandths of a core that pods can use; stands in for a missing limit.
    pub allocatable_cpu: u64,
    /// Bytes of memory that pods can use; stands in for a missing limit.
    pub allocatable_memory: u64,
}

/// A variable that can't be given a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// `resourceFieldRef.containerName` names no container of the pod.
    #[error("env {name:?}: the pod has no container {container:?}")]
    NoSuchContainer {
        /// The variable.
        name: Box<str>,
        /// The container it names.
        container: Box<str>,
    },
}

/// Values in the order of the specification; of two with one name the later counts.
///
/// # Errors
/// A `resourceFieldRef` names a container that the pod does not have.
pub fn environment(
    pod: &Pod,
    container: &Container,
    context: &EnvContext,
) -> Result<Vec<(String, String)>, EnvError> {
    let mut values: Vec<(String, String)> = Vec::with_capacity(container.env.len());
    for variable in &container.env {
        let value = match &variable.value {
            EnvValue::Literal(text) => expand(text, |name| lookup(&values, name)),
            EnvValue::Field(path) => field(pod, path, context),
            EnvValue::Resource(reference) => resource(pod, container, reference, context)
                .ok_or_else(|| EnvError::NoSuchContainer {
                    name: variable.name.clone(),
                    container: reference.container.clone().unwrap_or_default(),
                })?,
        };
        match values.iter_mut().find(|(name, _)| **name == *variable.name) {
            Some(slot) => slot.1 = value,
            None => values.push((variable.name.to_string(), value)),
        }
    }
    Ok(values)
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
    let from = |map: &rubelet_api::pod::StringMap, key: &str| {
        map.get(key).map(ToString::to_string).unwrap_or_default()
    };
    match path {
        FieldPath::Name => pod.name.name.to_string(),
        FieldPath::Namespace => pod.name.namespace.to_string(),
        FieldPath::Uid => pod.uid.to_string(),
        FieldPath::Label(key) => from(&pod.labels, key),
        FieldPath::Annotation(key) => from(&pod.annotations, key),
        FieldPath::NodeName => pod.spec.node_name.to_string(),
        FieldPath::ServiceAccountName => String::new(),
        FieldPath::HostIp => first(&context.node_ips),
        FieldPath::HostIps => context.node_ips.join(","),
        FieldPath::PodIp => first(&context.pod_ips),
        FieldPath::PodIps => context.pod_ips.join(","),
    }
}

fn resource(
    pod: &Pod,
    container: &Container,
    reference: &ResourceField,
    context: &EnvContext,
) -> Option<String> {
    let container = match &reference.container {
        Some(name) => pod.spec.container(name)?,
        None => container,
    };
    let resources = &container.resources;
    let cpu = |amount: Option<u64>, otherwise: u64| u128::from(amount.unwrap_or(otherwise));
    let bytes =
        |amount: Option<u64>, otherwise: u64| u128::from(amount.unwrap_or(otherwise)) * 1000;
    let milli = match reference.resource {
        ResourceName::LimitsCpu => cpu(resources.limits.cpu, context.allocatable_cpu),
        ResourceName::LimitsMemory => bytes(resources.limits.memory, context.allocatable_memory),
        ResourceName::RequestsCpu => cpu(resources.requests.cpu, 0),
        ResourceName::RequestsMemory => bytes(resources.requests.memory, 0),
    };
    Some(milli.div_ceil(reference.divisor_milli.max(1)).to_string())
}
