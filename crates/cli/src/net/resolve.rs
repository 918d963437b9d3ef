//! The address of a host.

use std::net::SocketAddr;

use anyhow::{Context as _, anyhow};
use clap::Args;
use rubelet_netprobe::packet::Family;

/// Which family of addresses is used.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct FamilyArgs {
    /// Use IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6')]
    ipv6: bool,
}

impl FamilyArgs {
    /// The family, if only one is wanted.
    pub(super) fn family(self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        }
    }
}

/// The address of a host: its first one of a wanted family. Its port is 0.
pub(super) async fn resolve(host: &str, family: Option<Family>) -> anyhow::Result<SocketAddr> {
    let found = tokio::net::lookup_host((host, 0))
        .await
        .with_context(|| format!("cannot resolve {host:?}"))?;
    let fits =
        |address: &SocketAddr| family.is_none_or(|family| family == Family::of(address.ip()));
    found.into_iter().find(fits).ok_or_else(|| {
        let family = match family {
            Some(Family::V6) => "IPv6",
            _ => "IPv4",
        };
        anyhow!("{host:?} has no {family} address")
    })
}
