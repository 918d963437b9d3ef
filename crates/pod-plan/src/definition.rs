//! Compares running sandboxes and containers with the pod's current definition.

use rubelet_api::{
    container::Container,
    pod::{Pod, RestartPolicy},
};

use crate::observed::{ObservedContainer, ObservedSandbox};

/// The annotation with the definition from which a sandbox or container was created.
pub const DEFINITION_ANNOTATION: &str = "rubelet.dev/definition";

/// The definition of a pod's sandbox: everything that is fixed at its creation, and the init
/// containers except sidecars, because they run again only in a new sandbox. `None` for pods that
/// can't be edited.
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

/// True if a container must be replaced because its definition changed. For a container that
/// another kubelet created, only upstream's hash is compared.
#[must_use]
pub(crate) fn container_changed(wanted: &Container, found: &ObservedContainer) -> bool {
    match (&wanted.definition, &found.definition) {
        (Some(wanted), Some(found)) => wanted.0 != *found,
        _ => wanted.hash != found.hash,
    }
}

/// True if the sandbox must be replaced because its definition changed.
#[must_use]
pub(crate) fn sandbox_changed(pod: &Pod, found: &ObservedSandbox) -> bool {
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
