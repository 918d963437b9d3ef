//! Firewalls of the machine that drop forwarded packets by their policy.
//!
//! docker sets this policy for iptables' chain `FORWARD`. No rule of another table can accept what
//! a chain drops, so the packets of pods are accepted in that chain itself, as podman, docker and
//! kube-proxy do with theirs. The rules stand behind all others: what an administrator drops by a
//! rule stays dropped. Chains of other tables belong to other programs: these are only reported.

use rubelet_host::{
    netlink::NetlinkError,
    nft::{Batch, ChainName, Connection, Expression as E, TableFamily},
};

use super::names::Names;

/// Accepts the pods' packets in iptables' chains with the policy drop. Returns the other chains
/// with this policy.
///
/// # Errors
/// A rule can't be added, or chains can't be listed.
pub(super) fn open(
    connection: &mut Connection,
    names: &Names,
) -> Result<Vec<ChainName>, NetlinkError> {
    let (shared, others): (Vec<_>, Vec<_>) = connection
        .dropping_chains()?
        .into_iter()
        .partition(is_shared);
    for chain in &shared {
        accept(connection, names, chain)?;
    }
    Ok(others)
}

/// Removes the rules of [`open`].
///
/// # Errors
/// A rule can't be removed, or chains can't be listed.
pub(super) fn close(connection: &mut Connection, names: &Names) -> Result<(), NetlinkError> {
    for family in [TableFamily::Ip, TableFamily::Ip6] {
        let chain = ChainName::iptables_forward(family);
        connection.delete_rules_with_comment(&chain, &comment(names))?;
    }
    Ok(())
}

/// Whether programs of all kinds add rules to a chain, by iptables.
fn is_shared(chain: &ChainName) -> bool {
    matches!(chain.family, TableFamily::Ip | TableFamily::Ip6)
        && *chain == ChainName::iptables_forward(chain.family)
}

fn comment(names: &Names) -> String {
    format!("rubelet: pods on {}", names.bridge)
}

fn accept(
    connection: &mut Connection,
    names: &Names,
    chain: &ChainName,
) -> Result<(), NetlinkError> {
    let comment = comment(names);
    // Pods outside of the bridge are behind interfaces of their own.
    let direct = format!("{}*", names.prefix);
    let rules = [
        [E::From(&names.bridge), E::Count, E::Accept],
        [E::To(&names.bridge), E::Count, E::Accept],
        [E::From(&direct), E::Count, E::Accept],
        [E::To(&direct), E::Count, E::Accept],
    ];
    let found = connection.rules_with_comment(chain, &comment)?;
    if found.len() == rules.len() {
        return Ok(());
    }
    let mut batch = Batch::new(chain.family, &chain.table);
    for rule in found {
        batch.delete_rule(&chain.chain, rule);
    }
    for rule in &rules {
        batch.add_rule_with_comment(&chain.chain, rule, &comment);
    }
    connection.commit(batch, || format!("accept packets of pods in {chain}"))
}
