//! Metrics of a pod's interfaces.

use rubelet_cri::v1::MetricType;
use rubelet_host::netlink::Link;

use super::{LabelledValues, MetricDefinition, each};

const fn of(
    name: &'static str,
    help: &'static str,
    of: fn(&Link) -> LabelledValues,
) -> MetricDefinition<Link> {
    each(name, help, MetricType::Counter, &["interface"], of)
}

fn one(link: &Link, number: u64) -> LabelledValues {
    vec![(vec![link.name.clone()], number)]
}

/// The definitions.
pub(super) const METRICS: [MetricDefinition<Link>; 8] = [
    of(
        "container_network_receive_bytes_total",
        "Bytes received",
        |link| one(link, link.counters.rx_bytes),
    ),
    of(
        "container_network_receive_errors_total",
        "Errors while receiving",
        |link| one(link, link.counters.rx_errors),
    ),
    of(
        "container_network_receive_packets_total",
        "Packets received",
        |link| one(link, link.counters.rx_packets),
    ),
    of(
        "container_network_receive_packets_dropped_total",
        "Packets dropped while receiving",
        |link| one(link, link.counters.rx_dropped),
    ),
    of(
        "container_network_transmit_bytes_total",
        "Bytes sent",
        |link| one(link, link.counters.tx_bytes),
    ),
    of(
        "container_network_transmit_errors_total",
        "Errors while sending",
        |link| one(link, link.counters.tx_errors),
    ),
    of(
        "container_network_transmit_packets_total",
        "Packets sent",
        |link| one(link, link.counters.tx_packets),
    ),
    of(
        "container_network_transmit_packets_dropped_total",
        "Packets dropped while sending",
        |link| one(link, link.counters.tx_dropped),
    ),
];
