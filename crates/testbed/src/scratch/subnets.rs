//! Which addresses an instance takes: private ones that nothing on this machine leads to.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

/// The first two bytes of ranges that other programs do not take by default: podman takes 10.88 and
/// 10.89, docker 172.17 and those behind it, CRI-O 10.85, k3s 10.42, flannel 10.244, and a VPN may
/// lead to all of 10.0.0.0/8. The last one is for tests of networks (RFC 2544).
const POOLS: [[u8; 2]; 5] = [[10, 215], [10, 179], [172, 29], [192, 168], [198, 18]];
/// The third bytes of subnets of 254 addresses; those behind them are for [`free_wide`].
const OCTETS: std::ops::RangeInclusive<u8> = 1..=247;
/// Where the one wide subnet of each pool begins.
const WIDE_OCTET: u8 = 248;
const WIDE_PREFIX: u8 = 21;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subnet {
    address: u32,
    prefix: u8,
}

impl Subnet {
    fn new([a, b]: [u8; 2], c: u8, prefix: u8) -> Self {
        Self {
            address: Ipv4Addr::new(a, b, c, 0).to_bits(),
            prefix,
        }
    }

    fn overlaps(self, other: Self) -> bool {
        let shorter = self.prefix.min(other.prefix);
        let mask = u32::MAX.checked_shl(32 - u32::from(shorter)).unwrap_or(0);
        self.address & mask == other.address & mask
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.address), self.prefix)
    }
}

/// A subnet of 254 addresses that no route of this machine leads to, and its third byte, which is
/// none of `taken`.
///
/// # Errors
/// When the routes can't be read, or no subnet is free.
pub(super) fn free(taken: &[u8]) -> Result<(Subnet, u8)> {
    choose(&routes()?, taken).context(
        "all subnets of the test bed are in use: end what still runs of old instances, or take \
         away a route to all private addresses",
    )
}

/// A subnet of 2046 addresses that no route of this machine leads to.
///
/// # Errors
/// As [`free`].
pub(super) fn free_wide() -> Result<Subnet> {
    let routes = routes()?;
    let all = POOLS.map(|pool| Subnet::new(pool, WIDE_OCTET, WIDE_PREFIX));
    let free = all.into_iter().find(|one| is_free(*one, &routes));
    free.context("no wide subnet is free: take away a route to all private addresses")
}

fn choose(routes: &[Subnet], taken: &[u8]) -> Option<(Subnet, u8)> {
    let octets = || OCTETS.filter(|octet| !taken.contains(octet));
    let all = POOLS
        .iter()
        .flat_map(|pool| octets().map(move |octet| (Subnet::new(*pool, octet, 24), octet)));
    all.into_iter().find(|(one, _)| is_free(*one, routes))
}

fn is_free(subnet: Subnet, routes: &[Subnet]) -> bool {
    !routes.iter().any(|route| route.overlaps(subnet))
}

/// What is reached from here, the addresses of this machine included.
fn routes() -> Result<Vec<Subnet>> {
    // This thread may be in another network namespace than the process.
    let path = "/proc/thread-self/net/route";
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok(parse(&text))
}

/// The destinations in the form of the kernel: the second and the eighth column are numbers as they
/// lie in memory. The default route is left out.
fn parse(text: &str) -> Vec<Subnet> {
    let number = |field: Option<&&str>| u32::from_str_radix(field?, 16).ok();
    let lines = text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let address = u32::from_be_bytes(number(fields.get(1))?.to_ne_bytes());
        let mask = u32::from_be_bytes(number(fields.get(7))?.to_ne_bytes());
        let prefix = u8::try_from(mask.leading_ones()).ok()?;
        Some(Subnet { address, prefix })
    });
    lines.filter(|subnet| subnet.prefix > 0).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::packages::IP;

    fn subnet(text: &str) -> Subnet {
        let (address, prefix) = text.split_once('/').unwrap();
        Subnet {
            address: address.parse::<Ipv4Addr>().unwrap().to_bits(),
            prefix: prefix.parse().unwrap(),
        }
    }

    #[test]
    fn what_a_machine_reaches_already_is_not_taken() {
        for (routes, taken, chosen) in [
            (&[][..], &[][..], "10.215.1.0/24"),
            (&[], &[1, 2], "10.215.3.0/24"),
            (&["10.215.1.0/24"], &[], "10.215.2.0/24"),
            (&["10.215.0.0/16"], &[], "10.179.1.0/24"),
            (&["10.88.0.0/16", "172.17.0.0/16"], &[], "10.215.1.0/24"),
            (&["10.0.0.0/8"], &[], "172.29.1.0/24"),
            (
                &["10.0.0.0/8", "172.16.0.0/12", "192.168.1.7/32"],
                &[],
                "192.168.2.0/24",
            ),
            (
                &["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
                &[1],
                "198.18.2.0/24",
            ),
        ] {
            let routes: Vec<_> = routes.iter().map(|text| subnet(text)).collect();
            let (found, _) = choose(&routes, taken).unwrap();
            assert_eq!(found.to_string(), chosen, "{routes:?}");
        }
        assert_eq!(
            choose(&[subnet("128.0.0.0/1"), subnet("0.0.0.0/1")], &[]),
            None
        );
    }

    #[test]
    fn beside_podman_and_docker_and_a_vpn_another_range_is_chosen() {
        if !rubelet_needs::root() {
            return;
        }
        let chosen = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            for (name, address) in [
                ("podman0", "10.88.0.1/16"),
                ("docker0", "172.17.0.1/16"),
                ("tun0", "10.215.0.2/15"),
            ] {
                for words in [
                    &["link", "add", name, "type", "bridge"][..],
                    &["address", "add", address, "dev", name],
                    &["link", "set", name, "up"],
                ] {
                    assert!(Command::new(IP).args(words).status().unwrap().success());
                }
            }
            (free(&[]).unwrap().0, free_wide().unwrap())
        });
        let (chosen, wide) = chosen.join().unwrap();
        assert_eq!(chosen.to_string(), "10.179.1.0/24");
        assert_eq!(wide.to_string(), "10.179.248.0/21");
    }
}
