//! The address of a host.

use std::net::SocketAddr;

use anyhow::{Context as _, anyhow};
use clap::Args;

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
    /// The address of a host: its first one of a wanted family. Its port is 0.
    pub(super) async fn resolve(self, host: &str) -> anyhow::Result<SocketAddr> {
        let found = tokio::net::lookup_host((host, 0))
            .await
            .with_context(|| format!("cannot resolve {host:?}"))?;
        let mut found = found.filter(|address| match address {
            SocketAddr::V4(_) => !self.ipv6,
            SocketAddr::V6(_) => !self.ipv4,
        });
        found.next().ok_or_else(|| {
            let family = if self.ipv6 { "IPv6" } else { "IPv4" };
            anyhow!("{host:?} has no {family} address")
        })
    }
}
