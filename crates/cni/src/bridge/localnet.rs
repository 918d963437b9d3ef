//! `route_localnet`, by which the host's 127.0.0.1 leads to pods.
//!
//! The kernel then takes 127.0.0.0/8 for ordinary addresses on an interface, so that pods could reach
//! what listens on the host's loopback, or speak in its name. The chain `guard` drops that. So the
//! setting is on only while that chain is known to be in force.

use rubelet_host::netlink::RouteSocket;

use super::{names::Names, sysctl};

fn key(interface: &str) -> String {
    format!("ipv4/conf/{interface}/route_localnet")
}

/// Switches it on for the bridge and for pods that are reached without it.
///
/// # Errors
/// It can't be set; a sentence.
pub(super) fn allow(names: &Names) -> Result<(), String> {
    sysctl::set(&key(&names.bridge), "1")?;
    let links = RouteSocket::open().and_then(|mut socket| socket.links());
    let links = links.map_err(|error| rubelet_base::ErrorChain(&error).to_string())?;
    links
        .iter()
        .filter(|link| link.kind == "veth" && link.master.is_none() && link.group != names.doomed)
        .filter(|link| link.name.starts_with(&names.prefix))
        .try_for_each(|link| allow_by(&link.name))
}

/// Switches it on for one interface.
///
/// # Errors
/// It can't be set; a sentence.
pub(super) fn allow_by(interface: &str) -> Result<(), String> {
    sysctl::set(&key(interface), "1")
}

/// Switches it off for all interfaces that lead to pods.
///
/// # Errors
/// It is on and can't be switched off; a sentence.
pub(super) fn forbid(names: &Names) -> Result<(), String> {
    let mut failed = Ok(());
    for name in sysctl::list("ipv4/conf") {
        if names.leads_to_pods(&name) && sysctl::get(&key(&name)).as_deref() == Some("1") {
            failed = sysctl::set(&key(&name), "0").and(failed);
        }
    }
    failed
}
