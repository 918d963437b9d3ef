//! Chains that programs of `iptables` find, in its variant for nftables.

use std::path::Path;

use super::{Batch, ChainKind, TableFamily};
use crate::netlink::NetlinkError;

/// Creates a chain without rules, for IPv4 and for IPv6, in the network namespace of this thread, unless
/// it exists: as `iptables -t TABLE -N CHAIN`.
///
/// # Errors
/// The kernel has no nftables, or the process lacks privileges.
pub fn ensure_chain(table: &str, chain: &str) -> Result<(), NetlinkError> {
    let mut batch = Batch::new(TableFamily::Ip, table);
    for family in [TableFamily::Ip, TableFamily::Ip6] {
        batch
            .turn_to(family, table)
            .add_table()
            .add_chain(chain, ChainKind::Plain);
    }
    batch.commit(|| format!("create the chain {chain} of iptables"))
}

/// True if the variant of `iptables` before nftables is in use in the network namespace of this process:
/// then the other one must not be.
#[must_use]
pub fn is_legacy_in_use() -> bool {
    legacy_below(Path::new("/proc/self/net"))
}

fn legacy_below(directory: &Path) -> bool {
    ["ip_tables_names", "ip6_tables_names"]
        .iter()
        .any(|name| std::fs::read(directory.join(name)).is_ok_and(|names| !names.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::netns;

    #[test]
    fn iptables_finds_the_chain() {
        let netns = netns::create().unwrap();
        let shown = netns::within(&netns, || {
            // Once more changes nothing.
            for _ in 0..2 {
                ensure_chain("mangle", "RBT-HINT").unwrap();
            }
            ["iptables-nft-save", "ip6tables-nft-save"].map(|program| {
                let shown = Command::new(program).args(["-t", "mangle"]).output();
                shown.map(|shown| String::from_utf8_lossy(&shown.stdout).into_owned())
            })
        });
        for shown in shown.unwrap() {
            let Ok(shown) = shown else {
                rubelet_needs::missing("iptables");
                return;
            };
            assert_eq!(shown.matches("\n:RBT-HINT - [0:0]\n").count(), 1, "{shown}");
        }
    }

    #[test]
    fn the_old_variant_is_in_use_if_it_has_tables() {
        let directory = tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap();
        assert!(!legacy_below(directory.path()));
        let names = directory.path().join("ip_tables_names");
        std::fs::write(&names, "").unwrap();
        assert!(!legacy_below(directory.path()));
        std::fs::write(&names, "nat\nfilter\n").unwrap();
        assert!(legacy_below(directory.path()));
    }
}
