//! Kernel settings of interfaces that lead to pods: nothing that a pod sends gives this host a route, an
//! address or a neighbour.
//!
//! They are set while an interface is down. What a host does with router advertisements does not depend
//! on its having IPv6 addresses: the kernel has IPv6 on each interface, also where all pods have IPv4.

use super::sysctl::{Interfaces, Protocol};

/// Of the host's ends and of pods' own interfaces.
const ALL: &[(Protocol, &str, &str)] = &[
    (Protocol::V4, "accept_redirects", "0"),
    (Protocol::V4, "accept_source_route", "0"),
    (Protocol::V4, "arp_accept", "0"),
    (Protocol::V6, "accept_ra", "0"),
    (Protocol::V6, "autoconf", "0"),
    (Protocol::V6, "accept_redirects", "0"),
];

/// Of the bridge besides: it answers for its own addresses, and for nobody else's.
const BRIDGE: &[(Protocol, &str, &str)] = &[
    (Protocol::V4, "arp_ignore", "1"),
    (Protocol::V4, "proxy_arp", "0"),
];

/// Sets them on an interface.
///
/// # Errors
/// One can't be set and has another value; a sentence.
pub(super) fn interface(interfaces: &Interfaces, name: &str) -> Result<(), String> {
    set(interfaces, name, ALL)
}

/// As [`interface`], for the bridge.
pub(super) fn bridge(interfaces: &Interfaces, name: &str) -> Result<(), String> {
    set(interfaces, name, ALL)?;
    set(interfaces, name, BRIDGE)
}

fn set(
    interfaces: &Interfaces,
    name: &str,
    values: &[(Protocol, &str, &str)],
) -> Result<(), String> {
    values
        .iter()
        .try_for_each(|(protocol, key, value)| interfaces.set(*protocol, name, key, value))
}
