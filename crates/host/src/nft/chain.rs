//! The names of chains and of rules.

use std::fmt;

use super::TableFamily;

/// The name of a chain. It is shown as `nft` writes it: `ip filter FORWARD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainName {
    /// The packets that pass it.
    pub family: TableFamily,
    /// Its table.
    pub table: String,
    /// Its name.
    pub chain: String,
}

impl ChainName {
    /// The chain of `iptables` for forwarded packets, or with [`TableFamily::Ip6`] that of `ip6tables`.
    #[must_use]
    pub fn iptables_forward(family: TableFamily) -> Self {
        Self {
            family,
            table: "filter".to_owned(),
            chain: "FORWARD".to_owned(),
        }
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.family.name(), self.table, self.chain)
    }
}

/// The kernel's number of a rule within its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleHandle(pub(super) u64);
