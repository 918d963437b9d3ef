//! AppArmor profiles of pods.

use rubelet_api::{pod::Pod, security::Profile};

use super::Rejection;

/// Rejects a pod that requests a profile if the kernel does not enforce profiles.
pub(super) fn check(pod: &Pod, enabled: bool) -> Result<(), Rejection> {
    let ephemeral = pod.spec.ephemeral_containers.iter();
    let of_containers = pod
        .spec
        .all_containers()
        .chain(ephemeral.map(|one| &one.container))
        .map(|container| container.security.shared.apparmor.as_ref());
    let mut profiles = of_containers.chain([pod.spec.security.shared.apparmor.as_ref()]);
    let asks = profiles.any(|one| one.is_some_and(|profile| *profile != Profile::Unconfined));
    if asks && !enabled {
        return Err(Rejection::new(
            "AppArmor",
            "Cannot enforce AppArmor: AppArmor is not enabled on the host",
        ));
    }
    Ok(())
}
