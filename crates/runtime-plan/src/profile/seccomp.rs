//! Which filter of system calls a container gets.

use std::path::PathBuf;

use rubelet_cri::v1;

use super::{RequestedProfile, wanted};
use crate::{Refusal, host::HostFacts};

const FIELD: &str = "linux.security_context.seccomp";

/// A decision about the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seccomp {
    /// No filter.
    Unconfined,
    /// [`crate::seccomp::runtime_default`].
    RuntimeDefault,
    /// The profile in that file, see [`crate::seccomp::localhost`].
    Localhost(PathBuf),
}

/// Decides on the filter. A privileged container never has one, and neither has one that requests
/// none: kubelets request the default where they want it.
///
/// # Errors
/// A malformed profile, or a filter on a kernel that can't filter.
pub fn seccomp(
    security: &v1::LinuxContainerSecurityContext,
    host: &HostFacts,
) -> Result<Seccomp, Refusal> {
    if security.privileged {
        return Ok(Seccomp::Unconfined);
    }
    let old = old_text(security);
    let wanted = wanted(FIELD, security.seccomp.as_ref(), old)?;
    let chosen = match wanted {
        None | Some(RequestedProfile::Unconfined) => return Ok(Seccomp::Unconfined),
        Some(RequestedProfile::RuntimeDefault) => Seccomp::RuntimeDefault,
        Some(RequestedProfile::Localhost(path)) if path.starts_with('/') => {
            Seccomp::Localhost(path.into())
        }
        Some(RequestedProfile::Localhost(path)) => {
            return Err(Refusal::new(
                FIELD,
                format!("the path of a Localhost profile must be absolute, not {path:?}"),
            ));
        }
    };
    if host.seccomp {
        Ok(chosen)
    } else {
        Err(Refusal::new(
            FIELD,
            "seccomp is not supported by the host's kernel",
        ))
    }
}

/// The file to read before a container is made, if it has a profile of the host's.
///
/// # Errors
/// As [`seccomp`].
pub fn seccomp_file(
    container: &v1::ContainerConfig,
    host: &HostFacts,
) -> Result<Option<PathBuf>, Refusal> {
    let linux = container.linux.as_ref();
    let Some(security) = linux.and_then(|linux| linux.security_context.as_ref()) else {
        return Ok(None);
    };
    Ok(match seccomp(security, host)? {
        Seccomp::Localhost(path) => Some(path),
        Seccomp::Unconfined | Seccomp::RuntimeDefault => None,
    })
}

#[expect(
    deprecated,
    reason = "kubelets before CRI 0.23 write only the string form"
)]
fn old_text(security: &v1::LinuxContainerSecurityContext) -> &str {
    &security.seccomp_profile_path
}
