//! Addresses of this machine. No packet is sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// The source addresses of outgoing traffic, one of each family, IPv4 first. The peers are
/// documentation addresses (RFC 5737, RFC 3849); connecting a UDP socket only selects a route.
/// route.
#[must_use]
pub fn outward() -> Vec<IpAddr> {
    let local = |from: IpAddr, to: IpAddr| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
    };
    let v4 = local(
        Ipv4Addr::UNSPECIFIED.into(),
        Ipv4Addr::new(192, 0, 2, 1).into(),
    );
    let v6 = local(
        Ipv6Addr::UNSPECIFIED.into(),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    );
    v4.into_iter().chain(v6).collect()
}

/// Whether an interface of this machine has the address: only then can a socket bind to it. Always
/// true if the kernel allows binding to foreign addresses (`ip_nonlocal_bind`).
#[must_use]
pub fn is_local(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_distinguished_from_foreign_ones() {
        assert!(is_local(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_local(Ipv4Addr::new(192, 0, 2, 1).into()));
        for ip in outward() {
            assert!(is_local(ip) && !ip.is_loopback(), "{ip}");
        }
    }
}
