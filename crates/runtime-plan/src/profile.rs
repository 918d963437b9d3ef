//! Security profiles: seccomp, AppArmor and SELinux, as requested by the CRI.

mod apparmor;
mod seccomp;
mod selinux;

pub use apparmor::{APPARMOR_DEFAULT, apparmor, apparmor_default_text};
pub use seccomp::{SeccompChoice, seccomp, seccomp_file};
pub use selinux::selinux;

use rubelet_cri::v1::{SecurityProfile, security_profile::ProfileType};

use crate::Refusal;

/// A requested profile.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestedProfile {
    /// The runtime's own profile.
    RuntimeDefault,
    /// No profile.
    Unconfined,
    /// A profile of the host, by name or path.
    Localhost(String),
}

/// Reads the typed form, or the older string if that is missing. `None` requests nothing.
fn wanted(
    field: &str,
    profile: Option<&SecurityProfile>,
    old: &str,
) -> Result<Option<RequestedProfile>, Refusal> {
    let Some(profile) = profile else {
        return from_text(field, old);
    };
    let kind = ProfileType::try_from(profile.profile_type).map_err(|_| {
        Refusal::new(
            field,
            format!("unknown profile type {}", profile.profile_type),
        )
    })?;
    let name = &profile.localhost_ref;
    if kind != ProfileType::Localhost && !name.is_empty() {
        return Err(Refusal::new(
            field,
            "localhost_ref must only be set if profile_type is Localhost",
        ));
    }
    Ok(Some(match kind {
        ProfileType::RuntimeDefault => RequestedProfile::RuntimeDefault,
        ProfileType::Unconfined => RequestedProfile::Unconfined,
        ProfileType::Localhost => localhost(field, name)?,
    }))
}

fn from_text(field: &str, text: &str) -> Result<Option<RequestedProfile>, Refusal> {
    match text {
        "" => Ok(None),
        "runtime/default" | "docker/default" => Ok(Some(RequestedProfile::RuntimeDefault)),
        "unconfined" => Ok(Some(RequestedProfile::Unconfined)),
        _ if text.starts_with("localhost/") => localhost(field, text).map(Some),
        _ => Err(Refusal::new(field, format!("invalid profile {text:?}"))),
    }
}

/// Kubelets without the typed form prefix the name.
fn localhost(field: &str, name: &str) -> Result<RequestedProfile, Refusal> {
    let name = name.strip_prefix("localhost/").unwrap_or(name);
    if name.is_empty() {
        return Err(Refusal::new(field, "a Localhost profile needs a name"));
    }
    Ok(RequestedProfile::Localhost(name.to_owned()))
}
