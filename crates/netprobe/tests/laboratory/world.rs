//! Network namespaces, and the links and routes between them.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::ControlFlow,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    process::{Command, Stdio},
    time::Duration,
};

use rubelet_host::{
    netlink::{Address, Changes, Route, RouteSocket, Veth},
    netns,
};
use rubelet_netprobe::{
    packet::Family,
    ping::{PingEvent, PingOptions, PingTarget, ping},
    sockets::NamespaceOf,
    statistics::Summary,
    trace::{TraceEvent, TraceOptions, TraceTarget, trace},
    wait::stop_pair,
};

/// The MTU of links that are not special.
pub(crate) const MTU: u32 = 1500;

/// A host or a router.
pub(crate) struct Node {
    pub(crate) netns: OwnedFd,
}

impl Node {
    pub(crate) fn new() -> Self {
        let node = Self {
            netns: netns::create().unwrap(),
        };
        node.inside(|| switch_on("lo"));
        for (name, value) in [
            ("ipv4/ip_forward", "1"),
            ("ipv6/conf/all/forwarding", "1"),
            ("ipv4/ping_group_range", "0 2147483647"),
            // Routers ask for their neighbours with link-local addresses, which must be usable at once.
            ("ipv6/conf/all/accept_dad", "0"),
            ("ipv6/conf/default/accept_dad", "0"),
            ("ipv6/conf/default/dad_transmits", "0"),
            // Answers may take another way than requests.
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/default/rp_filter", "0"),
            ("ipv4/icmp_ratelimit", "0"),
            ("ipv6/icmp/ratelimit", "0"),
            // By flow, with the ports.
            ("ipv4/fib_multipath_hash_policy", "1"),
            ("ipv6/fib_multipath_hash_policy", "1"),
        ] {
            node.set(name, value);
        }
        // Not on every kernel a setting of the namespace; the limit is far above what a test needs.
        node.inside(|| fs::write("/proc/sys/net/ipv4/icmp_msgs_burst", "1000").ok());
        node
    }

    /// Runs `act` inside.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        netns::within(&self.netns, act).unwrap()
    }

    pub(crate) fn set(&self, name: &str, value: &str) {
        let path = format!("/proc/sys/net/{name}");
        self.inside(|| fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}")));
    }

    /// Opens sockets inside.
    pub(crate) fn sockets(&self) -> NamespaceOf<BorrowedFd<'_>> {
        NamespaceOf(self.netns.as_fd())
    }

    /// Runs a program of Debian inside.
    pub(crate) fn command(&self, program: &str, words: &str) {
        let done = self.inside(|| {
            Command::new(program)
                .args(words.split(' '))
                .stdin(Stdio::null())
                .output()
                .unwrap()
        });
        assert!(done.status.success(), "{program} {words}: {done:?}");
    }

    /// Adds rules of nftables to a hook of the family inet.
    pub(crate) fn filter(&self, hook: &str, rules: &[&str]) {
        self.command("nft", "add table inet rbt");
        self.command(
            "nft",
            &format!("add chain inet rbt {hook} {{ type filter hook {hook} priority 0; }}"),
        );
        for rule in rules {
            self.command("nft", &format!("add rule inet rbt {hook} {rule}"));
        }
    }

    pub(crate) fn ping(&self, target: IpAddr, options: &PingOptions) -> Pinged {
        let target = PingTarget {
            name: target.to_string(),
            address: SocketAddr::new(target, 0),
        };
        let events = reported(|stop, report| {
            ping(&[target], options, &self.sockets(), stop, report).unwrap();
        });
        let Some(PingEvent::Summary { summary, .. }) = events.last().cloned() else {
            panic!("{events:?}");
        };
        Pinged { events, summary }
    }

    pub(crate) fn trace(&self, target: IpAddr, options: &TraceOptions) -> Vec<TraceEvent> {
        let target = TraceTarget {
            name: target.to_string(),
            address: SocketAddr::new(target, 0),
        };
        reported(|stop, report| trace(&target, options, &self.sockets(), stop, report).unwrap())
    }
}

/// What a probe reports until it is done.
fn reported<E>(probe: impl FnOnce(BorrowedFd<'_>, &mut dyn FnMut(E) -> ControlFlow<()>)) -> Vec<E> {
    let (_running, stop) = stop_pair().unwrap();
    let mut events = Vec::new();
    probe(stop.as_fd(), &mut |event| {
        events.push(event);
        ControlFlow::Continue(())
    });
    events
}

/// The reports of a ping.
pub(crate) struct Pinged {
    pub(crate) events: Vec<PingEvent>,
    pub(crate) summary: Summary,
}

impl Pinged {
    /// The messages of the errors, with their senders.
    pub(crate) fn errors(&self) -> Vec<(Option<IpAddr>, String)> {
        let errors = self.events.iter().filter_map(|event| match event {
            PingEvent::Error { from, message, .. } => Some((*from, message.clone())),
            _ => None,
        });
        errors.collect()
    }
}

/// A flood waits for each answer, so that a busy machine loses nothing.
pub(crate) fn flood(count: u64) -> PingOptions {
    PingOptions {
        count: Some(count),
        flood: true,
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(60),
        ..PingOptions::default()
    }
}

/// One end of a link.
pub(crate) struct End<'a> {
    pub(crate) node: &'a Node,
    pub(crate) name: &'a str,
    pub(crate) mac: [u8; 6],
    pub(crate) addresses: Vec<IpAddr>,
}

/// Makes a link between two namespaces.
pub(crate) fn link(left: &End<'_>, right: &End<'_>, mtu: u32) {
    left.node.inside(|| {
        let mut changes = Changes::default();
        changes.add_veth(Veth {
            name: left.name,
            mac: left.mac,
            master: None,
            peer: right.name,
            peer_mac: right.mac,
            peer_netns: right.node.netns.as_fd(),
            mtu,
        });
        apply(changes);
    });
    for end in [left, right] {
        end.node.inside(|| {
            switch_on(end.name);
            let link = index(end.name);
            let mut changes = Changes::default();
            for address in &end.addresses {
                let prefix = if address.is_ipv4() { 24 } else { 64 };
                changes.add_address(Address {
                    link,
                    address: *address,
                    prefix,
                });
            }
            apply(changes);
        });
    }
    for end in [left, right] {
        end.node.inside(|| {
            until_running(end.name);
            for address in &end.addresses {
                until_asked_for(end.name, *address);
            }
        });
    }
}

/// Waits until an interface passes frames. It has a carrier since both ends are up, but the kernel
/// activates it in the background, at times a second later, and until then loses what is sent by it.
fn until_running(name: &str) {
    // The question alone has Linux 6.8 and later activate it.
    until(&format!("{name} has a carrier"), || {
        let link = RouteSocket::open().unwrap().link(name).unwrap();
        link.unwrap().running
    });
}

/// Waits until neighbours can ask for an address. The kernel joins the group that an address of version
/// 6 is asked for at (RFC 4291, 2.7.1) in the background: the first question would be lost, and the next
/// one comes after a second.
fn until_asked_for(name: &str, address: IpAddr) {
    let IpAddr::V6(address) = address else {
        return;
    };
    let [.., a, b, c] = address.octets();
    let group = format!("ff0200000000000000000001ff{a:02x}{b:02x}{c:02x}");
    until(&format!("{name} is in the group of {address}"), || {
        // Of this thread's namespace.
        let groups = fs::read_to_string("/proc/thread-self/net/igmp6").unwrap();
        groups.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            (words.next(), words.next()) == (Some(name), Some(&*group))
        })
    });
}

/// Waits for a condition of the kernel.
fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("waited in vain until {what}");
}

/// A client, routers and a server, one behind the other. Node 0 is the client.
pub(crate) struct Chain {
    pub(crate) nodes: Vec<Node>,
}

impl Chain {
    /// A chain with these MTUs of its links; there is one node more than links.
    pub(crate) fn new(mtus: &[u32]) -> Self {
        Self::with_first_link(mtus, |left, right| link(left, right, mtus[0]))
    }

    /// The same, with a first link that the caller makes.
    pub(crate) fn with_first_link(mtus: &[u32], first: impl FnOnce(&End<'_>, &End<'_>)) -> Self {
        let nodes: Vec<Node> = (0..=mtus.len()).map(|_| Node::new()).collect();
        let mut first = Some(first);
        for (number, (pair, mtu)) in (0_u8..).zip(nodes.windows(2).zip(mtus)) {
            let left = End {
                node: &pair[0],
                name: "rbt-right",
                mac: [2, 0, 0, 0, number, 1],
                addresses: both(number, 1),
            };
            let right = End {
                node: &pair[1],
                name: "rbt-left",
                mac: [2, 0, 0, 0, number, 2],
                addresses: both(number, 2),
            };
            match first.take() {
                Some(first) => first(&left, &right),
                None => link(&left, &right, *mtu),
            }
        }
        let chain = Self { nodes };
        let links = u8::try_from(mtus.len()).unwrap();
        for (place, node) in (0..=links).zip(&chain.nodes) {
            for net in 0..links {
                if net > place {
                    node.route(net, "rbt-right", both(place, 2));
                } else if net + 1 < place {
                    node.route(net, "rbt-left", both(place - 1, 1));
                }
            }
        }
        chain
    }

    pub(crate) fn client(&self) -> &Node {
        &self.nodes[0]
    }

    /// The address with which the node behind so many links answers.
    pub(crate) fn hop(family: Family, distance: u8) -> IpAddr {
        address(family, distance - 1, 2)
    }

    /// The server's address.
    pub(crate) fn server(&self, family: Family) -> IpAddr {
        Self::hop(family, u8::try_from(self.nodes.len() - 1).unwrap())
    }
}

impl Node {
    /// Adds routes of both families to a network of a chain.
    pub(crate) fn route(&self, net: u8, name: &str, gateways: Vec<IpAddr>) {
        self.inside(|| {
            let link = index(name);
            let mut changes = Changes::default();
            for gateway in gateways {
                let family = Family::of(gateway);
                changes.add_route(Route {
                    destination: address(family, net, 0),
                    prefix: if family == Family::V4 { 24 } else { 64 },
                    gateway: Some(gateway),
                    link,
                    source: None,
                });
            }
            apply(changes);
        });
    }
}

pub(crate) fn address(family: Family, net: u8, host: u8) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::new(10, 66, net, host).into(),
        Family::V6 => Ipv6Addr::new(0xfd66, 0, 0, net.into(), 0, 0, 0, host.into()).into(),
    }
}

pub(crate) fn both(net: u8, host: u8) -> Vec<IpAddr> {
    vec![
        address(Family::V4, net, host),
        address(Family::V6, net, host),
    ]
}

pub(crate) fn index(name: &str) -> u32 {
    let link = RouteSocket::open().unwrap().link(name).unwrap();
    link.unwrap().index
}

fn switch_on(name: &str) {
    let mut changes = Changes::default();
    changes.set_up(name);
    apply(changes);
}

fn apply(changes: Changes) {
    RouteSocket::open()
        .unwrap()
        .apply(changes, || "build the laboratory".to_owned())
        .unwrap();
}
