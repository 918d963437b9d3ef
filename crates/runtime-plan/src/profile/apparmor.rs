//! The AppArmor profile of a container.

use rubelet_cri::v1;

use super::{RequestedProfile, wanted};
use crate::{Refusal, host::HostFacts};

const FIELD: &str = "linux.security_context.apparmor";

/// Name of the runtime's own profile. `rubelet-runtime` loads it into the kernel.
pub const APPARMOR_DEFAULT: &str = "rubelet-default";

/// The profile's name, empty for none. `loaded` are the profiles in the kernel.
///
/// A container that requests no profile gets the runtime's own if it is loaded, unless it is
/// privileged. A requested profile that is not loaded is refused. Only on a host without AppArmor
/// the runtime's default means none.
///
/// # Errors
/// A malformed profile, a profile that is not loaded, a Localhost profile on a host without
/// AppArmor.
pub fn apparmor(
    security: &v1::LinuxContainerSecurityContext,
    host: &HostFacts,
    loaded: &[String],
) -> Result<String, Refusal> {
    let wanted = wanted(FIELD, security.apparmor.as_ref(), old_text(security))?;
    let is_loaded = |name: &str| loaded.iter().any(|one| one == name);
    match wanted {
        Some(RequestedProfile::Unconfined) => Ok(String::new()),
        Some(RequestedProfile::Localhost(name)) if !host.apparmor => Err(Refusal::new(
            FIELD,
            format!(
                "apparmor is not supported, so the profile {name} cannot be applied: the host's kernel has no AppArmor, or it is switched off"
            ),
        )),
        None | Some(RequestedProfile::RuntimeDefault) if !host.apparmor || security.privileged => {
            Ok(String::new())
        }
        None if !is_loaded(APPARMOR_DEFAULT) => Ok(String::new()),
        None => Ok(APPARMOR_DEFAULT.to_owned()),
        Some(RequestedProfile::RuntimeDefault) if is_loaded(APPARMOR_DEFAULT) => {
            Ok(APPARMOR_DEFAULT.to_owned())
        }
        Some(RequestedProfile::RuntimeDefault) => Err(Refusal::new(
            FIELD,
            format!(
                "the profile {APPARMOR_DEFAULT} is not loaded into the kernel and could not be: see `rubelet doctor`"
            ),
        )),
        Some(RequestedProfile::Localhost(name)) if is_loaded(&name) => Ok(name),
        Some(RequestedProfile::Localhost(name)) => Err(Refusal::new(
            FIELD,
            format!(
                "apparmor profile not found {name}: load it into the kernel of this machine first"
            ),
        )),
    }
}

#[expect(
    deprecated,
    reason = "kubelets before CRI 0.23 write only the string form"
)]
fn old_text(security: &v1::LinuxContainerSecurityContext) -> &str {
    &security.apparmor_profile
}

/// Source text of the runtime's own profile, for `apparmor_parser`: files, network and capabilities
/// as otherwise permitted to the container, but no mounts, no writes to kernel interfaces below
/// `/proc` and `/sys`, and signals and tracing only between processes under the same profile.
#[must_use]
pub fn apparmor_default_text() -> String {
    let mut text =
        format!("profile {APPARMOR_DEFAULT} flags=(attach_disconnected,mediate_deleted) {{\n");
    for rule in [
        "file",
        "network",
        // The families that the default filter of system calls denies. That can't inspect
        // `socketcall` of 32-bit programs; this is checked wherever a socket is made.
        "deny network alg",
        "deny network vsock",
        "capability",
        "umount",
        "signal (receive) peer=unconfined",
        "signal (send, receive) peer=@{profile_name}",
        "ptrace (trace, read, tracedby, readby) peer=@{profile_name}",
        "deny mount",
        "deny @{PROC}/sys/[^k]** wklx",
        "deny @{PROC}/sys/kernel/[^s]** wklx",
        "deny @{PROC}/sys/kernel/s[^h]** wklx",
        "deny @{PROC}/sysrq-trigger rwklx",
        "deny @{PROC}/kcore rwklx",
        "deny @{PROC}/mem rwklx",
        "deny @{PROC}/kmem rwklx",
        "deny /sys/firmware/** rwklx",
        "deny /sys/kernel/security/** rwklx",
        "deny /sys/devices/virtual/powercap/** rwklx",
        "deny /sys/[^f]*/** wklx",
        "deny /sys/f[^s]*/** wklx",
        "deny /sys/fs/[^c]*/** wklx",
    ] {
        text.push_str("  ");
        text.push_str(
            &rule
                .replace("@{profile_name}", APPARMOR_DEFAULT)
                .replace("@{PROC}", "/proc"),
        );
        text.push_str(",\n");
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests;
