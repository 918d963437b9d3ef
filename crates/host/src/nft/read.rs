//! Reads a table back from the kernel, to compare it with what was created.

use std::collections::BTreeSet;

use crate::netlink::{
    NetlinkError,
    message::{self, Messages},
    socket::REQUEST,
};

use super::{
    ChainName, Connection, Element, GETCHAIN, GETRULE, GETTABLE, RuleHandle, SUBSYSTEM,
    TableFamily, header,
};

const GETSETELEM: u16 = 13;
const GETGEN: u16 = 16;

/// A table without the elements of its sets. Two of them are equal if they treat packets alike; it
/// has the kernel's format, which differs between kernels from what was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    flags: Vec<u8>,
    chains: BTreeSet<Vec<Option<Vec<u8>>>>,
    rules: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Connection {
    /// The number of the network namespace's last nftables change, by any program.
    ///
    /// # Errors
    /// The kernel has no nftables, or the process lacks privileges.
    pub fn generation(&mut self) -> Result<u32, NetlinkError> {
        let mut request = Messages::default();
        request.begin(SUBSYSTEM << 8 | GETGEN, REQUEST, &header(0, 0));
        let what = "ask for the generation of nftables";
        self.0.get(&request, what, |answer| {
            part(answer, 1)
                .and_then(|bytes| number(&bytes))
                .unwrap_or_default()
        })
    }

    /// The current table, if it exists.
    ///
    /// # Errors
    /// The kernel has no nftables, or the process lacks privileges.
    pub fn shape(
        &mut self,
        family: TableFamily,
        table: &str,
    ) -> Result<Option<Shape>, NetlinkError> {
        let head = header(family.number(), 0);
        let mut request = Messages::default();
        request
            .begin(SUBSYSTEM << 8 | GETTABLE, REQUEST, &head)
            .text(1, table);
        let found = self
            .0
            .get(&request, "look for an nftables table", |item| part(item, 2));
        let flags = match found {
            Ok(flags) => flags.unwrap_or_default(),
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut list = |kind: u16, what| {
            let named = |messages: &mut Messages| {
                messages.text(1, table);
            };
            let mut items = self.0.list(SUBSYSTEM << 8 | kind, &head, named, what)?;
            // Older kernels also list the contents of other tables.
            items.retain(|item| {
                let name = part(item, 1).map(|name| message::text(&name));
                item.first() == Some(&family.number()) && name.as_deref() == Some(table)
            });
            Ok::<_, NetlinkError>(items)
        };
        // Name, hook with its priority, policy, type and flags; handles and counts of use change.
        let chains = list(GETCHAIN, "list the chains of a table")?
            .iter()
            .map(|item| [3, 4, 5, 7, 10].map(|kind| part(item, kind)).to_vec())
            .collect();
        let rules = list(GETRULE, "list the rules of a table")?
            .iter()
            .filter_map(|item| Some((part(item, 2)?, part(item, 4).unwrap_or_default())))
            .collect();
        Ok(Some(Shape {
            flags,
            chains,
            rules,
        }))
    }

    /// The rules of a chain as the kernel lists them, in their order.
    pub(super) fn rules(&mut self, chain: &ChainName) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let mut items = self.0.list(
            SUBSYSTEM << 8 | GETRULE,
            &header(chain.family.number(), 0),
            |messages| {
                messages.text(1, &chain.table).text(2, &chain.chain);
            },
            "list the rules of a chain",
        )?;
        // Older kernels also list the rules of other chains.
        items.retain(|item| chain_name(item, 2).as_ref() == Some(chain));
        Ok(items)
    }

    /// The elements of a set, in the format of [`super::Batch::add_elements`].
    ///
    /// # Errors
    /// There is no such set, or the process lacks privileges.
    pub fn elements(
        &mut self,
        family: TableFamily,
        table: &str,
        set: &str,
    ) -> Result<BTreeSet<Element>, NetlinkError> {
        let items = self.0.list(
            SUBSYSTEM << 8 | GETSETELEM,
            &header(family.number(), 0),
            |messages| {
                messages.text(1, table).text(2, set);
            },
            "list the elements of a set",
        )?;
        let mut found = BTreeSet::new();
        for item in &items {
            let list = part(item, 3).unwrap_or_default();
            for (_, element) in message::attributes(&list) {
                let value = |kind| {
                    let value = message::attribute(element, kind)?;
                    message::attribute(value, 1).map(<[u8]>::to_vec)
                };
                if let Some(key) = value(1) {
                    found.insert((key, value(2).unwrap_or_default()));
                }
            }
        }
        Ok(found)
    }
}

/// An attribute of an item, behind its `struct nfgenmsg`.
pub(super) fn part(item: &[u8], kind: u16) -> Option<Vec<u8>> {
    message::attribute(item.get(4..)?, kind).map(<[u8]>::to_vec)
}

/// The chain that an item is or belongs to: its table is the first attribute, its own name is `kind`.
pub(super) fn chain_name(item: &[u8], kind: u16) -> Option<ChainName> {
    let text = |kind| part(item, kind).map(|bytes| message::text(&bytes));
    Some(ChainName {
        family: TableFamily::from_number(*item.first()?)?,
        table: text(1)?,
        chain: text(kind)?,
    })
}

/// The handle of a rule, which traces name in the same place.
pub(super) fn handle(item: &[u8]) -> Option<RuleHandle> {
    wide_number(&part(item, 3)?).map(RuleHandle)
}

/// A number of nfnetlink.
pub(super) fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// A 64-bit number of nfnetlink.
pub(super) fn wide_number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}
