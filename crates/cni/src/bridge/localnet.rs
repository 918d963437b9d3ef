//! `route_localnet`, which makes host ports work on 127.0.0.1.
//!
//! With it the kernel routes 127.0.0.0/8 on the interface like other addresses: pods could reach
//! services on the host's loopback, or send with its addresses. The chain `guard` drops such
//! packets, so the setting is on only while that chain is known to be in force.

use rubelet_host::netlink::{NetlinkError, RouteSocket};

use super::{
    names::Names,
    sysctl::{self, SysctlError},
};

/// Why the setting can't be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LocalnetError {
    /// The interfaces of pods can't be listed.
    #[error(transparent)]
    Links(#[from] NetlinkError),
    /// A parameter can't be set.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
}

fn key(interface: &str) -> String {
    format!("ipv4/conf/{interface}/route_localnet")
}

/// Enables it for the bridge and for pods outside of it.
///
/// # Errors
/// It can't be set.
pub(super) fn allow(names: &Names) -> Result<(), LocalnetError> {
    sysctl::set(&key(&names.bridge), "1")?;
    let links = RouteSocket::open()?.links()?;
    links
        .iter()
        .filter(|link| {
            link.kind == "veth" && link.master.is_none() && link.group != names.deletion_group
        })
        .filter(|link| link.name.starts_with(&names.prefix))
        .try_for_each(|link| allow_by(&link.name))
}

/// Enables it for one interface.
///
/// # Errors
/// It can't be set.
pub(super) fn allow_by(interface: &str) -> Result<(), LocalnetError> {
    Ok(sysctl::set(&key(interface), "1")?)
}

/// Disables it for all interfaces of pods.
///
/// # Errors
/// It is on and can't be disabled.
pub(super) fn forbid(names: &Names) -> Result<(), LocalnetError> {
    let mut failed = Ok(());
    for name in sysctl::list("ipv4/conf") {
        if names.leads_to_pods(&name) && sysctl::get(&key(&name)).as_deref() == Some("1") {
            // The others are tried after a failure as well.
            failed = sysctl::set(&key(&name), "0")
                .map_err(LocalnetError::from)
                .and(failed);
        }
    }
    failed
}
