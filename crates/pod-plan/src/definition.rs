//! Whether the running containers were made from the pod's current definition.

use rubelet_api::{
    container::Container,
    pod::{Pod, RestartPolicy},
};

use crate::observed::{ObservedContainer, ObservedSandbox};

/// The annotation that carries the definition a sandbox or container was made from.
pub const DEFINITION_ANNOTATION: &str = "rubelet.dev/definition";

/// The definition of a pod's sandbox: what is fixed when it is created, and the init containers
/// that run to their end, because they run again only in a new sandbox. `None` for pods that can't
/// be edited.
#[must_use]
pub fn sandbox_definition(pod: &Pod) -> Option<Box<str>> {
    let own = pod.sandbox_definition.as_ref()?;
    let mut text = String::from(&*own.0);
    let sidecar = |init: &&Container| init.restart_policy == Some(RestartPolicy::Always);
    let mut init_containers = pod
        .spec
        .init_containers
        .iter()
        .filter(|c| !sidecar(c))
        .peekable();
    if init_containers.peek().is_none() {
        return Some(text.into());
    }
    for init in init_containers {
        text.push('+');
        text.push_str(&init.name);
        text.push('=');
        text.push_str(init.definition.as_ref().map_or("", |hash| &hash.0));
    }
    Some(format!("v1:{:016x}", fnv1a_64(text.as_bytes())).into())
}

/// True if a container must be replaced because its definition changed. A container that another
/// kubelet made is judged by upstream's hash alone.
#[must_use]
pub fn container_changed(wanted: &Container, found: &ObservedContainer) -> bool {
    match (&wanted.definition, &found.definition) {
        (Some(wanted), Some(found)) => wanted.0 != *found,
        _ => wanted.hash != found.hash,
    }
}

/// True if the sandbox must be replaced because what it was made from changed.
#[must_use]
pub fn sandbox_changed(pod: &Pod, found: &ObservedSandbox) -> bool {
    match (sandbox_definition(pod), &found.definition) {
        (Some(wanted), Some(found)) => wanted != *found,
        _ => false,
    }
}

fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
