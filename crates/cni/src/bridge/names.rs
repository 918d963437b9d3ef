//! Names and MAC addresses. All derive from the bridge's name, the sandbox's ID and addresses, so
//! that the owner of any interface can be recognized.

use std::net::IpAddr;

/// Names on the host.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// The bridge, and the nftables table.
    pub(super) bridge: String,
    /// The prefix of the host ends of pods' veth pairs.
    pub(super) prefix: String,
    /// The interface group for pending removals.
    pub(super) deletion_group: u32,
}

impl Names {
    pub(super) fn new(bridge: &str) -> Self {
        let hash = hash(bridge.as_bytes());
        let beginning: String = bridge
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(3)
            .collect();
        Self {
            bridge: bridge.to_owned(),
            prefix: format!("{beginning}{}", letters(hash, 4)),
            // The highest bit avoids the small numbers that administrators use.
            deletion_group: 0x8000_0000 | u32::try_from(hash >> 32).unwrap_or(0),
        }
    }

    /// The host end of a sandbox's veth pair: 15 bytes, the kernel's limit.
    pub(super) fn host_interface(&self, sandbox: &str) -> String {
        let rest = 15 - self.prefix.len();
        format!("{}{}", self.prefix, letters(hash(sandbox.as_bytes()), rest))
    }

    /// Whether packets that arrive on this interface are from pods.
    pub(super) fn leads_to_pods(&self, interface: &str) -> bool {
        interface == self.bridge || interface.starts_with(&self.prefix)
    }
}

/// The link-local address of an interface with this MAC address (RFC 4291, appendix A).
pub(super) fn link_local(mac: [u8; 6]) -> IpAddr {
    let [a, b, c, d, e, f] = mac;
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[0xfe, 0x80]);
    bytes[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    IpAddr::from(bytes)
}

/// The MAC address for an IP address inside of a pod, or of the bridge.
pub(super) fn inside_mac(address: IpAddr) -> [u8; 6] {
    mac(0x0a, address)
}

/// The MAC address of the host end of the pod with this address.
pub(super) fn outside_mac(address: IpAddr) -> [u8; 6] {
    mac(0x0e, address)
}

/// Both first bytes have the bit for locally administered addresses.
fn mac(first: u8, address: IpAddr) -> [u8; 6] {
    let [a, b, c, d] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => {
            let [.., a, b, c, d] = address.octets();
            [a, b, c, d]
        }
    };
    [first, 0x58, a, b, c, d]
}

/// The usual notation of MAC addresses.
pub(super) fn show_mac(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// FNV-1a with a final mix, so that the low bits depend on all of the text.
fn hash(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn letters(mut number: u64, count: usize) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    (0..count)
        .map(|_| {
            let letter = LETTERS[usize::try_from(number % 32).unwrap_or(0)];
            number /= 32;
            char::from(letter)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ_by_bridge_and_sandbox() {
        let (one, two) = (Names::new("rubelet0"), Names::new("rubelet1"));
        let name = one.host_interface("0123456789abcdef");
        assert_eq!(name.len(), 15);
        assert!(name.starts_with("rub"), "{name}");
        assert!(name.starts_with(&one.prefix) && !name.starts_with(&two.prefix));
        assert_ne!(name, one.host_interface("0123456789abcdee"));
        assert_ne!(one.deletion_group, two.deletion_group);
        assert_eq!(Names::new("a").host_interface("x").len(), 15);
        let many: std::collections::BTreeSet<String> = (0..2000)
            .map(|number| one.host_interface(&format!("{number:064x}")))
            .collect();
        assert_eq!(many.len(), 2000);
    }

    #[test]
    fn link_local_addresses_follow_the_hardware_address() {
        assert_eq!(
            link_local([0x0a, 0x58, 0x0a, 0x58, 0x01, 0x02]).to_string(),
            "fe80::858:aff:fe58:102"
        );
    }

    #[test]
    fn hardware_addresses_follow_the_ip_address() {
        let mac = inside_mac("10.88.1.2".parse().unwrap());
        assert_eq!(show_mac(mac), "0a:58:0a:58:01:02");
        assert_ne!(mac, outside_mac("10.88.1.2".parse().unwrap()));
        assert_eq!(
            show_mac(inside_mac("fd00::1:2".parse().unwrap())),
            "0a:58:00:01:00:02"
        );
    }
}
