//! Changes of nftables as other programs make them.

use std::os::fd::OwnedFd;

use rubelet_host::nft::{Batch, ChainName, TableFamily};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use crate::world::BRIDGE;

const INET: u8 = 1;
const NEW_TABLE: u16 = 10 << 8;
const NEW_CHAIN: u16 = 10 << 8 | 3;
const NEW_RULE: u16 = 10 << 8 | 6;
const DELETE_RULE: u16 = 10 << 8 | 8;
const CREATE: u16 = 0x400;

fn message(kind: u16, flags: u16, rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + rest.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(rest);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, format!("{value}\0").as_bytes())
}

/// Makes one change of a table. The socket is given back: a table may belong to it.
fn change(family: u8, kind: u16, flags: u16, attributes: &[Vec<u8>]) -> OwnedFd {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::NETFILTER),
    )
    .unwrap();
    let rest = [&[family, 0, 0, 0][..], &attributes.concat()].concat();
    let batch = [
        message(0x10, 1, &[0, 0, 0, 10]),
        message(kind, 1 | 4 | flags, &rest),
        message(0x11, 1, &[0, 0, 0, 10]),
    ]
    .concat();
    send(&socket, &batch, SendFlags::empty()).unwrap();
    let mut answer = [0; 4096];
    recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
    assert_eq!(&answer[16..20], &[0; 4], "the change was refused");
    socket
}

/// `NFPROTO_…`
fn number(family: TableFamily) -> u8 {
    match family {
        TableFamily::Inet => INET,
        TableFamily::Ip => 2,
        TableFamily::Bridge => 7,
        TableFamily::Ip6 => 10,
    }
}

/// Creates the bridge's table as one that belongs to a socket: only its owner may change it.
pub(crate) fn own_table(family: TableFamily) -> OwnedFd {
    let owned = attribute(2, &2u32.to_be_bytes());
    change(number(family), NEW_TABLE, CREATE, &[text(1, BRIDGE), owned])
}

/// Switches the bridge's table off, with all that is in it.
pub(crate) fn make_dormant() {
    let dormant = attribute(2, &1u32.to_be_bytes());
    change(INET, NEW_TABLE, 0, &[text(1, BRIDGE), dormant]);
}

/// Makes a chain whose policy drops what the host forwards.
pub(crate) fn drop_forwarded(chain: &ChainName) {
    let family = number(chain.family);
    change(family, NEW_TABLE, CREATE, &[text(1, &chain.table)]);
    let (hook, priority) = (2u32.to_be_bytes(), 0u32.to_be_bytes());
    let attributes = [
        text(1, &chain.table),
        text(3, &chain.chain),
        attribute(4, &[attribute(1, &hook), attribute(2, &priority)].concat()),
        attribute(5, &0u32.to_be_bytes()),
        text(7, "filter"),
    ];
    change(family, NEW_CHAIN, CREATE, &attributes);
}

/// Removes all rules of a chain.
pub(crate) fn flush(chain: &ChainName) {
    let named = [text(1, &chain.table), text(2, &chain.chain)];
    change(number(chain.family), DELETE_RULE, 0, &named);
}

/// Removes all rules of a chain of the bridge's table.
pub(crate) fn flush_chain(chain: &str) {
    change(INET, DELETE_RULE, 0, &[text(1, BRIDGE), text(2, chain)]);
}

/// Puts a rule in front of all others of a chain that drops everything.
pub(crate) fn drop_all(chain: &ChainName) {
    prepend(number(chain.family), &chain.table, &chain.chain, 0);
}

/// Puts a rule in front of all others of a chain of the bridge's table that lets everything pass.
pub(crate) fn accept_all(chain: &str) {
    prepend(INET, BRIDGE, chain, 1);
}

fn prepend(family: u8, table: &str, chain: &str, verdict: u32) {
    let verdict = attribute(1, &verdict.to_be_bytes());
    let data = [
        attribute(1, &0u32.to_be_bytes()),
        attribute(2, &attribute(2, &verdict)),
    ];
    let expression = [text(1, "immediate"), attribute(2, &data.concat())];
    let list = attribute(1, &expression.concat());
    let attributes = [text(1, table), text(2, chain), attribute(4, &list)];
    change(family, NEW_RULE, CREATE, &attributes);
}

/// Removes the bridge's table of a family.
pub(crate) fn delete_table(family: TableFamily) {
    let mut batch = Batch::new(family, BRIDGE);
    batch.delete_table();
    batch.commit(|| "remove a table".to_owned()).unwrap();
}
