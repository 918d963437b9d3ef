//! Firewalls of the machine that drop forwarded packets by their policy.
//!
//! docker sets this policy for iptables' chain `FORWARD`. No rule of another table can accept what
//! a chain drops, so the packets of pods are accepted in that chain itself, as podman, docker and
//! kube-proxy do with theirs. The rules stand behind all others: what an administrator drops by a
//! rule stays dropped. Chains of other tables belong to whoever made them: these are only reported.

use rubelet_host::{
    netlink::NetlinkError,
    nft::{Batch, Connection, DroppingChain, Expression as E, TableFamily},
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
) -> Result<Vec<DroppingChain>, NetlinkError> {
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
        let chain = shared_chain(family);
        let found = match connection.rules_with_comment(&chain, &comment(names)) {
            Err(error) if error.is_missing() => continue,
            found => found?,
        };
        if found.is_empty() {
            continue;
        }
        let mut batch = Batch::new(family, &chain.table);
        for rule in found {
            batch.delete_rule(&chain.chain, rule);
        }
        connection.commit(batch, || format!("remove the rules of pods from {chain}"))?;
    }
    Ok(())
}

/// The chain in which programs of all kinds add rules by iptables.
fn shared_chain(family: TableFamily) -> DroppingChain {
    DroppingChain {
        family,
        table: "filter".to_owned(),
        chain: "FORWARD".to_owned(),
    }
}

fn is_shared(chain: &DroppingChain) -> bool {
    matches!(chain.family, TableFamily::Ip | TableFamily::Ip6)
        && *chain == shared_chain(chain.family)
}

fn comment(names: &Names) -> String {
    format!("rubelet: pods on {}", names.bridge)
}

fn accept(
    connection: &mut Connection,
    names: &Names,
    chain: &DroppingChain,
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
