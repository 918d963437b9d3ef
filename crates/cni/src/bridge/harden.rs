//! Sysctls of interfaces of pods: no packet of a pod can add a route, an address or a neighbour to
//! this host.
//!
//! They are set while an interface is down. The IPv6 ones are needed in IPv4-only clusters, too:
//! the kernel processes router advertisements on every interface with IPv6 enabled, which is the
//! default.

use rubelet_host::nft::Family;

use super::sysctl::{Interfaces, SysctlError};

/// For both ends of veth pairs, and for the bridge.
const ALL: &[(Family, &str, &str)] = &[
    (Family::V4, "accept_redirects", "0"),
    (Family::V4, "accept_source_route", "0"),
    (Family::V4, "arp_accept", "0"),
    (Family::V6, "accept_ra", "0"),
    (Family::V6, "autoconf", "0"),
    (Family::V6, "accept_redirects", "0"),
];

/// Additional ones for the bridge: it answers ARP for its own addresses only.
const BRIDGE: &[(Family, &str, &str)] = &[
    (Family::V4, "arp_ignore", "1"),
    (Family::V4, "proxy_arp", "0"),
];

/// Sets them on an interface.
///
/// # Errors
/// One has another value and can't be set.
pub(super) fn interface(interfaces: &Interfaces, name: &str) -> Result<(), SysctlError> {
    set(interfaces, name, ALL)
}

/// As [`interface`], for the bridge.
pub(super) fn bridge(interfaces: &Interfaces, name: &str) -> Result<(), SysctlError> {
    set(interfaces, name, ALL)?;
    set(interfaces, name, BRIDGE)
}

fn set(
    interfaces: &Interfaces,
    name: &str,
    values: &[(Family, &str, &str)],
) -> Result<(), SysctlError> {
    values
        .iter()
        .try_for_each(|(family, key, value)| interfaces.set(*family, name, key, value))
}
