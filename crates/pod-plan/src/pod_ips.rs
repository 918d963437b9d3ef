//! The order of a pod's addresses.

use core::net::IpAddr;

/// The first address of the node's primary family, then the first of the other one (kubelet:
/// `sortPodIPs`). A node without addresses prefers IPv4; invalid addresses are left out.
#[must_use]
pub fn in_family_order(ips: &[Box<str>], node_ips: &[Box<str>]) -> Vec<Box<str>> {
    let parse = |ip: &str| ip.parse::<IpAddr>().ok();
    let primary = node_ips.first().and_then(|ip| parse(ip));
    let prefers_ipv6 = primary.is_some_and(|ip| ip.is_ipv6());
    [prefers_ipv6, !prefers_ipv6]
        .into_iter()
        .filter_map(|ipv6| {
            let mut all = ips.iter().filter_map(|ip| parse(ip));
            all.find(|ip| ip.is_ipv6() == ipv6)
        })
        .map(|ip| ip.to_string().into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_family_of_the_node_comes_first() {
        for (ips, node, expected) in [
            ("10.0.0.2,fd00::2", "192.0.2.1", "10.0.0.2,fd00::2"),
            ("fd00::2,10.0.0.2", "192.0.2.1", "10.0.0.2,fd00::2"),
            ("10.0.0.2,fd00::2", "2001:db8::1", "fd00::2,10.0.0.2"),
            ("10.0.0.2", "2001:db8::1", "10.0.0.2"),
            ("fd00::2,10.0.0.2", "", "10.0.0.2,fd00::2"),
            ("10.0.0.2,10.0.0.3,fd00::2", "192.0.2.1", "10.0.0.2,fd00::2"),
            ("FD00:0::2,soon", "192.0.2.1", "fd00::2"),
            ("", "192.0.2.1", ""),
        ] {
            let list = |text: &str| -> Vec<Box<str>> {
                let all = text.split(',').filter(|one| !one.is_empty());
                all.map(Box::from).collect()
            };
            let ordered = in_family_order(&list(ips), &list(node));
            assert_eq!(ordered, list(expected), "{ips} on {node}");
        }
    }
}
