//! Chains of other programs that drop forwarded packets, and rules with a comment in them.

use std::fmt;

use crate::netlink::{NetlinkError, message};

use super::{Connection, GETCHAIN, GETRULE, Hook, SUBSYSTEM, TableFamily, header, read::part};

/// The verdict `NF_DROP`.
const DROP: u32 = 0;

/// The kind of a comment among the data that `nft` and `iptables` store with a rule.
const COMMENT: u8 = 0;

/// A chain that drops forwarded packets unless one of its rules accepts them. If one drops a
/// packet, no other table can accept it.
///
/// It is shown as `nft` writes it: `ip filter FORWARD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppingChain {
    /// The packets that pass it.
    pub family: TableFamily,
    /// Its table.
    pub table: String,
    /// Its name.
    pub chain: String,
}

impl fmt::Display for DroppingChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.family.name(), self.table, self.chain)
    }
}

/// The kernel's number of a rule within its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleHandle(pub(super) u64);

impl Connection {
    /// All chains, of any program, that drop forwarded packets by their policy.
    ///
    /// # Errors
    /// The kernel has no nftables, or the process lacks privileges.
    pub fn dropping_chains(&mut self) -> Result<Vec<DroppingChain>, NetlinkError> {
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
        chain: &DroppingChain,
        comment: &str,
    ) -> Result<Vec<RuleHandle>, NetlinkError> {
        let items = self.0.list(
            SUBSYSTEM << 8 | GETRULE,
            &header(chain.family.number(), 0),
            |messages| {
                messages.text(1, &chain.table).text(2, &chain.chain);
            },
            "list the rules of a chain",
        )?;
        let wanted = user_data(comment);
        // Older kernels also list the rules of other chains.
        let here = |item: &[u8]| {
            let text = |kind| part(item, kind).map(|name| message::text(&name));
            text(1).as_ref() == Some(&chain.table) && text(2).as_ref() == Some(&chain.chain)
        };
        Ok(items
            .iter()
            .filter(|item| here(item) && part(item, 7).as_ref() == Some(&wanted))
            .filter_map(|item| {
                Some(RuleHandle(u64::from_be_bytes(
                    part(item, 3)?.try_into().ok()?,
                )))
            })
            .collect())
    }
}

fn dropping(item: &[u8]) -> Option<DroppingChain> {
    let family = [TableFamily::Inet, TableFamily::Ip, TableFamily::Ip6]
        .into_iter()
        .find(|family| item.first() == Some(&family.number()))?;
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
    let hook = number(message::attribute(&part(item, 4)?, 1)?)?;
    let policy = number(&part(item, 5)?)?;
    if (hook, policy) != (Hook::Forward.number(), DROP) {
        return None;
    }
    let text = |kind| part(item, kind).map(|bytes| message::text(&bytes));
    Some(DroppingChain {
        family,
        table: text(1)?,
        chain: text(3)?,
    })
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
