//! The addresses of an instance: private ones without a route on this machine.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

/// The first two bytes of ranges that other programs do not use by default: podman uses 10.88 and
/// 10.89, docker 172.17 and the following, CRI-O 10.85, k3s 10.42, flannel 10.244, and a VPN may
/// route all of 10.0.0.0/8. The last one is for tests of networks (RFC 2544).
const POOLS: [[u8; 2]; 5] = [[10, 215], [10, 179], [172, 29], [192, 168], [198, 18]];
/// The third bytes of subnets of 254 addresses; later ones are for [`free_wide`].
const OCTETS: std::ops::RangeInclusive<u8> = 1..=247;
/// Start of the one wide subnet of each pool.
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

/// A subnet of 254 addresses without a route on this machine, and its third byte, which is not in
/// `taken`.
///
/// # Errors
/// When the routes can't be read, or no subnet is free.
pub(super) fn free(taken: &[u8]) -> Result<(Subnet, u8)> {
    choose(&routes()?, taken).context(
        "all subnets of the test bed are in use: end what still runs of old instances, or take \
         away a route to all private addresses",
    )
}

/// A subnet of 2046 addresses without a route on this machine.
///
/// # Errors
/// As [`free`].
pub(super) fn free_wide() -> Result<Subnet> {
    let routes = routes()?;
    let all = POOLS.map(|pool| Subnet::new(pool, WIDE_OCTET, WIDE_PREFIX));
    let free = all.into_iter().find(|one| is_free(*one, &routes));
    free.context("no wide subnet is free: remove a route to all private addresses")
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

/// The routes of this machine, including its own addresses.
fn routes() -> Result<Vec<Subnet>> {
    // This thread may be in another network namespace than the process.
    let path = "/proc/thread-self/net/route";
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok(parse(&text))
}

/// The destinations in the kernel's format: the second and the eighth column are numbers in native
/// byte order. The default route is skipped.
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
mod tests;
