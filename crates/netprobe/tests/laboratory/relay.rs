//! Links with a relay in their middle, which does to packets what a test wants.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use rubelet_host::frames::Frames;
use rubelet_netprobe::{clock::SessionClock, packet::Family};

use crate::world::{Chain, End, MTU, Node, address, both, index, link};

/// A link with a relay in its middle.
pub(crate) struct Relay {
    _middle: Node,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What a relay does in one direction: which frames concern it, and what becomes of them.
pub(crate) struct Direction {
    pub(crate) concerns: fn(&[u8]) -> bool,
    pub(crate) decide: Decide,
}

impl Relay {
    /// Makes the link. `onward` is for what `left` sends.
    pub(crate) fn between(
        left: &End<'_>,
        right: &End<'_>,
        onward: Direction,
        back: Direction,
    ) -> Self {
        let middle = Node::new();
        // It is no host on the links: it must not answer.
        middle.set("ipv6/conf/all/disable_ipv6", "1");
        for (end, name, host) in [(left, "rbt-l", 1), (right, "rbt-r", 2)] {
            let own = End {
                node: &middle,
                name,
                mac: [2, 0, 0, 0, 0xf, host],
                addresses: Vec::new(),
            };
            link(end, &own, MTU);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let start = |from, to, mac, direction| {
            let ways = middle.inside(|| [from, to].map(|name| Frames::open(index(name)).unwrap()));
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || carry(&ways, mac, direction, &stop))
        };
        let threads = vec![
            start("rbt-l", "rbt-r", left.mac, onward),
            start("rbt-r", "rbt-l", right.mac, back),
        ];
        Self {
            _middle: middle,
            stop,
            threads,
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// A client and a server with a relay between them.
pub(crate) struct RelayedLink {
    // It ends before its links do.
    _relay: Relay,
    pub(crate) client: Node,
    _server: Node,
}

impl RelayedLink {
    /// Makes the link. `requests` decides about the echo requests of the client, `replies` about what
    /// comes back.
    pub(crate) fn new(requests: Decide, replies: Decide) -> Self {
        let (client, server) = (Node::new(), Node::new());
        let end = |node, host| End {
            node,
            name: "rbt0",
            mac: [2, 0, 0, 0, 0xe, host],
            addresses: both(0, host),
        };
        let [onward, back] = [requests, replies].map(|decide| Direction {
            concerns: is_echo,
            decide,
        });
        let relay = Relay::between(&end(&client, 1), &end(&server, 2), onward, back);
        Self {
            client,
            _server: server,
            _relay: relay,
        }
    }

    pub(crate) fn server(family: Family) -> IpAddr {
        address(family, 0, 2)
    }
}

/// How many hops away the server of a [`DelayedChain`] is.
pub(crate) const HOPS: u8 = 30;

/// A chain of routers, of which each is further away by a delay than the one before.
pub(crate) struct DelayedChain {
    // It ends before its links do.
    _relay: Relay,
    pub(crate) chain: Chain,
}

impl DelayedChain {
    pub(crate) fn new(delay: Duration) -> Self {
        let mut relay = None;
        let chain = Chain::with_first_link(&[MTU; HOPS as usize], |left, right| {
            let onward = Direction {
                concerns: is_echo,
                decide: untouched(),
            };
            let back = Direction {
                concerns: is_icmp,
                decide: Box::new(move |frame| {
                    // The third byte of the sender's address counts the hops before it.
                    let hop = u32::from(frame[ETHERNET + 14]) + 1;
                    Fate::later(delay * hop, &[frame])
                }),
            };
            relay = Some(Relay::between(left, right, onward, back));
        });
        Self {
            chain,
            _relay: relay.unwrap(),
        }
    }
}

/// What becomes of a frame: the frames that go on, each after a delay, and those that go back at once.
#[derive(Default)]
pub(crate) struct Fate {
    pub(crate) onward: Vec<(Duration, Vec<u8>)>,
    pub(crate) back: Vec<Vec<u8>>,
}

impl Fate {
    pub(crate) fn dropped() -> Self {
        Self::default()
    }

    pub(crate) fn onward(frames: &[&[u8]]) -> Self {
        Self::later(Duration::ZERO, frames)
    }

    pub(crate) fn later(delay: Duration, frames: &[&[u8]]) -> Self {
        Self {
            onward: frames.iter().map(|frame| (delay, frame.to_vec())).collect(),
            back: Vec::new(),
        }
    }
}

/// Decides about frames.
pub(crate) type Decide = Box<dyn FnMut(&[u8]) -> Fate + Send>;

/// Leaves frames as they are.
pub(crate) fn untouched() -> Decide {
    Box::new(|frame| Fate::onward(&[frame]))
}

/// Carries the frames of `from` from the first interface to the second one.
fn carry(
    [inward, outward]: &[Frames; 2],
    from: [u8; 6],
    mut direction: Direction,
    stop: &AtomicBool,
) {
    let clock = SessionClock::start();
    let mut waiting: Vec<(Duration, Vec<u8>)> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        let due = |(at, _): &(Duration, Vec<u8>)| *at <= now;
        for (_, frame) in waiting.extract_if(.., |frame| due(frame)) {
            outward.send(&frame).unwrap();
        }
        let next = waiting.iter().map(|(at, _)| at.saturating_sub(now)).min();
        let patience = next
            .unwrap_or(Duration::from_millis(20))
            .clamp(Duration::from_micros(100), Duration::from_millis(20));
        // Its own frames come by too.
        let frame = inward.wait_for(patience, |frame| frame.get(6..12) == Some(&from));
        let Some(frame) = frame.unwrap() else {
            continue;
        };
        if !(direction.concerns)(&frame) {
            outward.send(&frame).unwrap();
            continue;
        }
        let fate = (direction.decide)(&frame);
        for frame in fate.back {
            inward.send(&frame).unwrap();
        }
        let now = clock.now();
        for (delay, frame) in fate.onward {
            match delay.is_zero() {
                true => outward.send(&frame).unwrap(),
                false => waiting.push((now + delay, frame)),
            }
        }
    }
}

/// The length of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// Where the ICMP message begins in a frame of this family without options.
pub(crate) fn icmp_at(family: Family) -> usize {
    ETHERNET + family.ip_header()
}

/// An ICMP message over IPv4.
fn is_icmp(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x08, 0x00]) && frame.get(ETHERNET + 9) == Some(&1)
}

/// An echo message of either family.
fn is_echo(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x08, 0x00]) => {
            frame.get(ETHERNET + 9) == Some(&1)
                && matches!(frame.get(icmp_at(Family::V4)), Some(0 | 8))
        }
        Some([0x86, 0xdd]) => {
            frame.get(ETHERNET + 6) == Some(&58)
                && matches!(frame.get(icmp_at(Family::V6)), Some(128 | 129))
        }
        _ => false,
    }
}

/// A generator of numbers that are the same in each run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// True with this probability in percent.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        // Knuth's constants for 64 bits; the upper bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % 100 < percent
    }
}
