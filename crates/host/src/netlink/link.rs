//! Interfaces.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::{
    Changes, NetlinkError, RouteSocket,
    message::{self, Messages},
    socket::{CREATE, DO},
};

const RTM_NEWLINK: u16 = libc::RTM_NEWLINK;
const RTM_DELLINK: u16 = libc::RTM_DELLINK;
const RTM_GETLINK: u16 = libc::RTM_GETLINK;

// `linux/if_link.h`
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_BRPORT_MODE: u16 = 4;
const IFLA_BRPORT_LEARNING: u16 = 8;
const IFLA_BRPORT_ISOLATED: u16 = 33;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
const VETH_INFO_PEER: u16 = 1;

/// Traffic of an interface since its creation, from its own point of view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets that could not be received.
    pub rx_errors: u64,
    /// Received packets that were dropped for lack of space.
    pub rx_dropped: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Outgoing packets that were dropped for lack of space.
    pub tx_dropped: u64,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its kind in the kernel: `veth`, `bridge`; empty for hardware.
    pub kind: String,
    /// The index of the other end of a veth pair, in the network namespace where that end is.
    pub peer: Option<u32>,
    /// The index of the bridge whose port it is.
    pub master: Option<u32>,
    /// The bridge's settings of that port.
    pub port: Option<BridgePort>,
    /// Its MAC address; empty if it has none.
    pub mac: Vec<u8>,
    /// Its MTU.
    pub mtu: u32,
    /// Whether it is up.
    pub up: bool,
    /// Whether it passes frames: it is up, has a carrier, and the kernel has activated it.
    pub running: bool,
    /// Its group; 0 by default.
    pub group: u32,
    /// Its traffic.
    pub counters: Counters,
}

/// A bridge to create.
#[derive(Debug, Clone, Copy)]
pub struct Bridge<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its MAC address; with it the address does not change with the ports.
    pub mac: [u8; 6],
    /// Its MTU.
    pub mtu: u32,
}

/// The settings of a bridge port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgePort {
    /// Frames may be sent back through the port they came from. Needed if `br_netfilter` translates
    /// a pod's packet to the pod itself while it is still on the bridge.
    pub hairpin: bool,
    /// The bridge learns the MAC addresses of senders on the port. Without it only those count that
    /// were added by [`Changes::add_station`].
    pub learning: bool,
    /// No frames to or from other isolated ports. Needs Linux 4.18.
    pub isolated: bool,
}

/// A veth pair to create.
#[derive(Debug, Clone, Copy)]
pub struct Veth<'a> {
    /// The name of the local end.
    pub name: &'a str,
    /// The MAC address of that end.
    pub mac: [u8; 6],
    /// The bridge whose port that end becomes.
    pub master: Option<u32>,
    /// The name of the other end.
    pub peer: &'a str,
    /// The MAC address of the other end.
    pub peer_mac: [u8; 6],
    /// The network namespace of the other end.
    pub peer_netns: BorrowedFd<'a>,
    /// The MTU of both.
    pub mtu: u32,
}

impl RouteSocket {
    /// All interfaces.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn links(&mut self) -> Result<Vec<Link>, NetlinkError> {
        let mut links = Vec::new();
        self.socket.dump(
            RTM_GETLINK,
            &header(0, 0, 0),
            "list the interfaces",
            |item| {
                links.extend(parse(item));
            },
        )?;
        links.sort_by_key(|link| link.index);
        links.dedup_by_key(|link| link.index);
        Ok(links)
    }

    /// The first interfaces, at most `most`: a pod can create any number of them.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn first_links(self, most: usize) -> Result<Vec<Link>, NetlinkError> {
        let what = "list the interfaces";
        let items = self
            .socket
            .dump_beginning(RTM_GETLINK, &header(0, 0, 0), most, what)?;
        let mut links: Vec<Link> = items.iter().filter_map(|item| parse(item)).collect();
        links.sort_by_key(|link| link.index);
        links.dedup_by_key(|link| link.index);
        Ok(links)
    }

    /// The interface with this name, if there is one.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn link(&mut self, name: &str) -> Result<Option<Link>, NetlinkError> {
        let mut request = Messages::default();
        request
            .begin(RTM_GETLINK, 1, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name);
        match self.socket.get(&request, "look for an interface", parse) {
            Ok(link) => Ok(link),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Changes {
    /// Creates a bridge, without multicast snooping, which costs timers for each port.
    pub fn add_bridge(&mut self, bridge: Bridge<'_>) -> &mut Self {
        self.messages
            .begin(RTM_NEWLINK, CREATE, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, bridge.name)
            .attribute(libc::IFLA_ADDRESS, &bridge.mac)
            .number(libc::IFLA_MTU, bridge.mtu)
            .nest(libc::IFLA_LINKINFO, |info| {
                info.text(IFLA_INFO_KIND, "bridge")
                    .nest(IFLA_INFO_DATA, |data| {
                        data.attribute(IFLA_BR_MCAST_SNOOPING, &[0]);
                    });
            });
        self
    }

    /// Creates a veth pair; the other end is created directly in its namespace and with its name.
    pub fn add_veth(&mut self, veth: Veth<'_>) -> &mut Self {
        // One queue each: the kernel would create one for each possible processor, and a veth
        // forwards packets without queueing them.
        let queues = |messages: &mut Messages| {
            messages
                .number(libc::IFLA_MTU, veth.mtu)
                .number(IFLA_NUM_TX_QUEUES, 1)
                .number(IFLA_NUM_RX_QUEUES, 1);
        };
        let netns = veth.peer_netns.as_raw_fd().cast_unsigned();
        let messages = self
            .messages
            .begin(RTM_NEWLINK, CREATE, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, veth.name)
            .attribute(libc::IFLA_ADDRESS, &veth.mac);
        queues(messages);
        if let Some(master) = veth.master {
            messages.number(libc::IFLA_MASTER, master);
        }
        messages.nest(libc::IFLA_LINKINFO, |info| {
            info.text(IFLA_INFO_KIND, "veth")
                .nest(IFLA_INFO_DATA, |data| {
                    data.nest_with(VETH_INFO_PEER, &header(0, 0, 0), |peer| {
                        peer.text(libc::IFLA_IFNAME, veth.peer)
                            .attribute(libc::IFLA_ADDRESS, &veth.peer_mac)
                            .number(libc::IFLA_NET_NS_FD, netns);
                        queues(peer);
                    });
                });
        });
        self
    }

    /// Configures a bridge port.
    pub fn set_port(&mut self, name: &str, port: BridgePort) -> &mut Self {
        self.messages
            .begin(RTM_NEWLINK, DO, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .nest(libc::IFLA_LINKINFO, |info| {
                info.text(IFLA_INFO_SLAVE_KIND, "bridge")
                    .nest(IFLA_INFO_SLAVE_DATA, |data| {
                        data.attribute(IFLA_BRPORT_MODE, &[u8::from(port.hairpin)])
                            .attribute(IFLA_BRPORT_LEARNING, &[u8::from(port.learning)])
                            .attribute(IFLA_BRPORT_ISOLATED, &[u8::from(port.isolated)]);
                    });
            });
        self
    }

    /// Keeps the interface from getting an IPv6 link-local address when it is set up.
    pub fn no_link_local(&mut self, name: &str) -> &mut Self {
        self.messages
            .begin(RTM_NEWLINK, DO, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .nest(libc::IFLA_AF_SPEC, |families| {
                families.nest(AF_INET6, |inet6| {
                    inet6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
                });
            });
        self
    }

    /// Writes a description that `ip link` shows.
    pub fn describe(&mut self, name: &str, description: &str) -> &mut Self {
        let mut end = description.len().min(255);
        while !description.is_char_boundary(end) {
            end -= 1;
        }
        self.messages
            .begin(RTM_NEWLINK, DO, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .attribute(libc::IFLA_IFALIAS, &description.as_bytes()[..end]);
        self
    }

    /// Sets the MAC address of an interface.
    pub fn set_mac(&mut self, name: &str, mac: [u8; 6]) -> &mut Self {
        self.messages
            .begin(RTM_NEWLINK, DO, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .attribute(libc::IFLA_ADDRESS, &mac);
        self
    }

    /// Makes an interface a port of a bridge.
    pub fn set_master(&mut self, name: &str, master: u32) -> &mut Self {
        self.messages
            .begin(RTM_NEWLINK, DO, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .number(libc::IFLA_MASTER, master);
        self
    }

    /// Puts an interface into a group.
    pub fn set_group(&mut self, name: &str, group: u32) -> &mut Self {
        self.messages
            .begin(RTM_NEWLINK, DO, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .number(libc::IFLA_GROUP, group);
        self
    }

    /// Sets an interface up.
    pub fn set_up(&mut self, name: &str) -> &mut Self {
        let up = libc::IFF_UP.cast_unsigned();
        self.messages
            .begin(RTM_NEWLINK, DO, &header(0, up, up))
            .text(libc::IFLA_IFNAME, name);
        self
    }

    /// Removes an interface, and the other end of a pair with it.
    pub fn delete_link(&mut self, name: &str) -> &mut Self {
        self.messages
            .begin(RTM_DELLINK, DO, &header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name);
        self
    }

    /// Removes all interfaces of a group; the kernel waits only once for all of them.
    ///
    /// # Panics
    /// The group is 0, the default group of all interfaces.
    pub fn delete_group(&mut self, group: u32) -> &mut Self {
        assert_ne!(group, 0, "group 0 holds every interface");
        self.messages
            .begin(RTM_DELLINK, DO, &header(0, 0, 0))
            .number(libc::IFLA_GROUP, group);
        self
    }
}

const AF_INET6: u16 = 10;

/// `struct ifinfomsg`
pub(super) fn header(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&change.to_ne_bytes());
    header
}

fn parse(item: &[u8]) -> Option<Link> {
    let flags = message::number(item, 8)?;
    let has = |flag: i32| flags & flag.cast_unsigned() != 0;
    let mut link = Link {
        index: message::number(item, 4)?,
        name: String::new(),
        kind: String::new(),
        peer: None,
        master: None,
        port: None,
        mac: Vec::new(),
        mtu: 0,
        up: has(libc::IFF_UP),
        running: has(libc::IFF_RUNNING),
        group: 0,
        counters: Counters::default(),
    };
    for (kind, value) in message::attributes(item.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = message::text(value),
            libc::IFLA_ADDRESS => link.mac = value.to_vec(),
            libc::IFLA_MTU => link.mtu = message::number(value, 0)?,
            libc::IFLA_LINK => link.peer = message::number(value, 0),
            libc::IFLA_MASTER => link.master = message::number(value, 0),
            libc::IFLA_GROUP => link.group = message::number(value, 0)?,
            libc::IFLA_LINKINFO => {
                link.kind = message::attribute(value, IFLA_INFO_KIND)
                    .map(message::text)
                    .unwrap_or_default();
                link.port = port(value);
            }
            IFLA_STATS64 => link.counters = counters(value).unwrap_or_default(),
            _ => {}
        }
    }
    Some(link)
}

/// The bridge port settings in `IFLA_LINKINFO`.
fn port(info: &[u8]) -> Option<BridgePort> {
    let kind = message::attribute(info, IFLA_INFO_SLAVE_KIND).map(message::text)?;
    let data = message::attribute(info, IFLA_INFO_SLAVE_DATA)?;
    let is_on = |kind| message::attribute(data, kind) == Some(&[1]);
    (kind == "bridge").then(|| BridgePort {
        hairpin: is_on(IFLA_BRPORT_MODE),
        learning: is_on(IFLA_BRPORT_LEARNING),
        isolated: is_on(IFLA_BRPORT_ISOLATED),
    })
}

/// The beginning of `struct rtnl_link_stats64`.
fn counters(value: &[u8]) -> Option<Counters> {
    let at = |place: usize| {
        let bytes = value.get(place * 8..place * 8 + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    Some(Counters {
        rx_packets: at(0)?,
        tx_packets: at(1)?,
        rx_bytes: at(2)?,
        tx_bytes: at(3)?,
        rx_errors: at(4)?,
        tx_errors: at(5)?,
        rx_dropped: at(6)?,
        tx_dropped: at(7)?,
    })
}
