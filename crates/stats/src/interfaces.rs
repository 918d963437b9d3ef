//! Network interfaces, from `/proc/PID/net/dev`.

use jiff::Timestamp;

use crate::sample::{InterfaceSample, NetworkSample};

/// Interfaces that are shown.
const MOST_INTERFACES: usize = 64;

/// The default interface by its name, as in the kubelet.
const DEFAULT: &str = "eth0";

/// The interfaces of the node, without its ends of those of pods. `None` if the text has no table.
pub(crate) fn of_node(text: &str, at: Timestamp) -> Option<NetworkSample> {
    let is_of_pod = |name: &str| {
        ["veth", "docker"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    parse(text, at, |name| !is_of_pod(name))
}

/// The interfaces of a pod. `None` if the text has no table.
pub(crate) fn of_pod(text: &str, at: Timestamp) -> Option<NetworkSample> {
    parse(text, at, |_| true)
}

fn parse(text: &str, at: Timestamp, is_shown: impl Fn(&str) -> bool) -> Option<NetworkSample> {
    // Two lines of headings.
    let lines = text.lines().skip(2).filter_map(interface);
    let is_shown = |one: &InterfaceSample| &*one.name != "lo" && is_shown(&one.name);
    let mut interfaces: Vec<_> = lines.filter(is_shown).take(MOST_INTERFACES).collect();
    let default = interfaces.iter().position(|one| &*one.name == DEFAULT);
    if let Some(place) = default {
        interfaces[..=place].rotate_right(1);
    }
    (!interfaces.is_empty()).then_some(NetworkSample {
        at,
        interfaces,
        has_default: default.is_some(),
    })
}

/// A line such as `eth0: 10 1 2 0 0 0 0 0 20 3 4 0 0 0 0 0`: eight numbers of what was received, and
/// eight of what was sent, each beginning with bytes, packets, errors and dropped packets.
fn interface(line: &str) -> Option<InterfaceSample> {
    let (name, numbers) = line.split_once(':')?;
    let numbers: Vec<u64> = numbers
        .split_whitespace()
        .map_while(|number| number.parse().ok())
        .collect();
    let number = |place: usize| numbers.get(place).copied();
    Some(InterfaceSample {
        name: name.trim().into(),
        rx_bytes: number(0),
        rx_packets: number(1),
        rx_errors: number(2),
        rx_dropped: number(3),
        tx_bytes: number(8),
        tx_packets: number(9),
        tx_errors: number(10),
        tx_dropped: number(11),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_of_the_node_are_shown_with_the_default_one_first() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets\n\
            lo: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n\
            vethab: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n\
            wlan0: 5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0\n  \
            eth0: 10 1 2 5 0 0 0 0 20 3 4 6 0 0 0 0\n\
            short: 7\n";
        let found = of_node(text, Timestamp::UNIX_EPOCH).unwrap();
        let names: Vec<&str> = found.interfaces.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["eth0", "wlan0", "short"]);
        assert!(found.has_default);
        let first = &found.interfaces[0];
        let received = [
            first.rx_bytes,
            first.rx_packets,
            first.rx_errors,
            first.rx_dropped,
        ];
        assert_eq!(received, [Some(10), Some(1), Some(2), Some(5)]);
        let sent = [
            first.tx_bytes,
            first.tx_packets,
            first.tx_errors,
            first.tx_dropped,
        ];
        assert_eq!(sent, [Some(20), Some(3), Some(4), Some(6)]);
        assert_eq!(found.interfaces[2].tx_bytes, None);
        assert_eq!(of_node("", Timestamp::UNIX_EPOCH), None);
        let names = of_pod(text, Timestamp::UNIX_EPOCH).unwrap().interfaces;
        assert_eq!(names.len(), 4, "{names:?}");
    }
}
