//! Chains of other programs that drop forwarded packets, and rules with a comment in them.

use crate::netlink::{NetlinkError, message};

use super::{
    Batch, ChainName, Connection, GETCHAIN, Hook, NF_DROP, RuleHandle, SUBSYSTEM, TableFamily,
    header,
    read::{self, part},
};

/// The kind of a comment among the data that `nft` and `iptables` store with a rule.
pub(super) const COMMENT: u8 = 0;

impl Connection {
    /// All chains, of any program, that drop forwarded packets by their policy. If one drops a packet,
    /// no other table can accept it.
    ///
    /// # Errors
    /// The kernel has no nftables, or the process lacks privileges.
    pub fn dropping_chains(&mut self) -> Result<Vec<ChainName>, NetlinkError> {
        let kind = SUBSYSTEM << 8 | GETCHAIN;
        let what = "list the chains of nftables";
        let items = self.0.list(kind, &header(0, 0), |_| (), what)?;
        Ok(items.iter().filter_map(|item| dropping(item)).collect())
    }

    /// The rules of a chain with this comment, in their order.
    ///
    /// # Errors
    /// There is no such chain, or the process lacks privileges.
    pub fn rules_with_comment(
        &mut self,
        chain: &ChainName,
        comment: &str,
    ) -> Result<Vec<RuleHandle>, NetlinkError> {
        let wanted = user_data(comment);
        let rules = self.rules(chain)?.into_iter();
        Ok(rules
            .filter(|item| part(item, 7).as_ref() == Some(&wanted))
            .filter_map(|item| read::handle(&item))
            .collect())
    }

    /// Removes the rules of a chain with this comment; there may be none, and no such chain.
    ///
    /// # Errors
    /// They can't be listed or removed.
    pub fn delete_rules_with_comment(
        &mut self,
        chain: &ChainName,
        comment: &str,
    ) -> Result<(), NetlinkError> {
        let found = match self.rules_with_comment(chain, comment) {
            Err(error) if error.is_missing() => return Ok(()),
            found => found?,
        };
        if found.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new(chain.family, &chain.table);
        for rule in found {
            batch.delete_rule(&chain.chain, rule);
        }
        self.commit(batch, || format!("remove rules from {chain}"))
    }
}

fn dropping(item: &[u8]) -> Option<ChainName> {
    let chain = read::chain_name(item, 3)?;
    let hook = read::number(message::attribute(&part(item, 4)?, 1)?)?;
    let policy = read::number(&part(item, 5)?)?;
    let drops = (hook, policy) == (Hook::Forward.number(), NF_DROP);
    // Frames through a bridge are not forwarded packets.
    (drops && chain.family != TableFamily::Bridge).then_some(chain)
}

/// A comment in the format of libnftnl: kind, length, and text with a final zero.
pub(super) fn user_data(comment: &str) -> Vec<u8> {
    let end = comment.floor_char_boundary(127);
    let length = u8::try_from(end + 1).expect("at most 128 bytes");
    let mut bytes = vec![COMMENT, length];
    bytes.extend(&comment.as_bytes()[..end]);
    bytes.push(0);
    bytes
}
