//! The seccomp filter of a container.

use std::path::PathBuf;

use rubelet_cri::v1;

use super::{RequestedProfile, wanted};
use crate::{Refusal, host::HostFacts};

const FIELD: &str = "linux.security_context.seccomp";

/// A decision about the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeccompChoice {
    /// No filter.
    Unconfined,
    /// [`crate::seccomp::runtime_default`].
    RuntimeDefault,
    /// The profile in that file, see [`crate::seccomp::localhost`].
    Localhost(PathBuf),
}

/// Decides on the filter. Privileged containers and those that request no profile have none:
/// kubelets request the default explicitly.
///
/// # Errors
/// A malformed profile, or a filter on a kernel that can't filter.
pub fn seccomp(
    security: &v1::LinuxContainerSecurityContext,
    host: &HostFacts,
) -> Result<SeccompChoice, Refusal> {
    if security.privileged {
        return Ok(SeccompChoice::Unconfined);
    }
    let old = old_text(security);
    let wanted = wanted(FIELD, security.seccomp.as_ref(), old)?;
    let chosen = match wanted {
        None | Some(RequestedProfile::Unconfined) => return Ok(SeccompChoice::Unconfined),
        Some(RequestedProfile::RuntimeDefault) => SeccompChoice::RuntimeDefault,
        Some(RequestedProfile::Localhost(path)) if path.starts_with('/') => {
            SeccompChoice::Localhost(path.into())
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

/// The file of a Localhost profile, which must be read before the container is created.
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
        SeccompChoice::Localhost(path) => Some(path),
        SeccompChoice::Unconfined | SeccompChoice::RuntimeDefault => None,
    })
}

#[expect(
    deprecated,
    reason = "kubelets before CRI 0.23 write only the string form"
)]
fn old_text(security: &v1::LinuxContainerSecurityContext) -> &str {
    &security.seccomp_profile_path
}
