//! Judges the results of a check, and gives advice.

use std::{fmt::Write as _, net::IpAddr, time::Duration};

use super::{
    connect::ConnectResult,
    dns::DnsAnswer,
    finding::Finding,
    inputs::{CheckInputs, CheckTarget, DefaultRoute, InterfaceState},
};
use crate::ping::{mtu::PathMtu, text::short_millis};

const REATTACH: &str = "The network did not attach the pod, or lost it: look for errors of the network at the runtime, and \
     delete the pod so that it is recreated";

/// Whether the interfaces have the addresses of the pod's status.
#[must_use]
pub fn addresses(inputs: &CheckInputs) -> Finding {
    if inputs.interfaces.is_empty() {
        return Finding::wrong("there is no interface but loopback", REATTACH);
    }
    let has = |address: &IpAddr| {
        let mut interfaces = inputs.interfaces.iter();
        interfaces.any(|interface| interface.addresses.contains(address))
    };
    let missing: Vec<&IpAddr> = inputs.addresses.iter().filter(|one| !has(one)).collect();
    let all = inputs.interfaces.iter().map(describe);
    let all = all.collect::<Vec<_>>().join("; ");
    if !missing.is_empty() {
        let detail = format!(
            "no interface has {}, which the pod's status shows: {all}",
            list(missing)
        );
        return Finding::wrong(detail, REATTACH);
    }
    let down = |one: &&InterfaceState| !one.up && !one.addresses.is_empty();
    if let Some(down) = inputs.interfaces.iter().find(down) {
        let advice = format!(
            "Something in the pod or the network switched {} off: delete the pod so that it is recreated",
            down.name
        );
        return Finding::wrong(format!("{} is down: {all}", down.name), advice);
    }
    match inputs.addresses.is_empty() {
        true => Finding::skipped(format!("the pod's status shows no address yet: {all}")),
        false => Finding::ok(all),
    }
}

fn describe(interface: &InterfaceState) -> String {
    let mut text = format!("{} has ", interface.name);
    match interface.addresses.is_empty() {
        true => text.push_str("no address"),
        false => text.push_str(&list(&interface.addresses)),
    }
    let _ = write!(text, ", mtu {}", interface.mtu);
    text
}

fn list<'a>(addresses: impl IntoIterator<Item = &'a IpAddr>) -> String {
    let texts: Vec<String> = addresses.into_iter().map(IpAddr::to_string).collect();
    texts.join(", ")
}

/// The result of echo requests to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PingCheckResult {
    /// It answers, after this time.
    Answer(Duration),
    /// An ICMP message, or an error of the pod's own kernel.
    Error(String),
    /// Nothing.
    Silence,
}

/// Whether the next hop is there.
#[must_use]
pub fn gateway(route: Option<(&DefaultRoute, Option<PingCheckResult>)>) -> Finding {
    let Some((route, pinged)) = route else {
        return Finding::wrong(
            "there is no default route",
            "The pod reaches its own network only. The network adds the route when it attaches the pod: look at \
             its configuration, and delete the pod so that it is recreated",
        );
    };
    let interface = &route.interface;
    let Some(gateway) = route.gateway else {
        return Finding::ok(format!(
            "the default route leads to {interface}, without a gateway"
        ));
    };
    match pinged {
        Some(PingCheckResult::Answer(rtt)) => Finding::ok(format!(
            "{gateway} answers by {interface} in {} ms",
            short_millis(rtt)
        )),
        Some(PingCheckResult::Error(error)) => Finding::wrong(
            format!("{gateway} is not reached by {interface}: {error}"),
            "Look whether the node has an interface with that address that is up, such as the bridge of pods, and \
             whether the other end of the pod's interface is attached to it",
        ),
        // Some networks have a gateway that exists as an entry of ARP only.
        Some(PingCheckResult::Silence) | None => Finding::skipped(format!(
            "{gateway} by {interface} is there, but does not answer echo requests"
        )),
    }
}

/// Whether the nameservers answer.
#[must_use]
pub fn nameservers(answers: &[(IpAddr, DnsAnswer)]) -> Finding {
    let answering =
        |answer: &DnsAnswer| matches!(answer, DnsAnswer::Addresses(_) | DnsAnswer::Code(_));
    let silent = answers.iter().find(|(_, answer)| !answering(answer));
    let good: Vec<&IpAddr> = answers
        .iter()
        .filter(|(_, answer)| answering(answer))
        .map(|(server, _)| server)
        .collect();
    let Some((server, answer)) = silent else {
        return match good.is_empty() {
            true => Finding::wrong(
                "the pod has no nameserver",
                "Look at dnsPolicy and dnsConfig of the pod, and at resolvConf and clusterDNS of the node",
            ),
            false => Finding::ok(format!("{} answers", list(good))),
        };
    };
    let why = match answer {
        DnsAnswer::Error(error) => format!("{server} is not reached: {error}"),
        _ => format!("{server} does not answer"),
    };
    let advice = "Look whether the DNS of the cluster runs, whether a NetworkPolicy forbids port 53, and whether the proxy of \
                  Services (kube-proxy) runs on this node";
    match good.is_empty() {
        true => Finding::wrong(why, advice),
        false => Finding::wrong(
            format!(
                "{why}; {} does: each lookup may wait for the other first",
                list(good)
            ),
            advice,
        ),
    }
}

/// Whether a name is known.
#[must_use]
pub fn name(name: &str, answer: Option<&DnsAnswer>) -> Finding {
    match answer {
        None => Finding::skipped("no nameserver answers"),
        Some(DnsAnswer::Addresses(found)) => Finding::ok(format!("{name} is {}", list(found))),
        Some(DnsAnswer::Code(code)) => Finding::wrong(
            format!("the nameserver answers {code} for {name}"),
            "Look whether the name is right, and for NXDOMAIN whether clusterDomain of the node is the domain that the DNS of \
             the cluster serves; for SERVFAIL at the log of the DNS, whose own nameserver may be away",
        ),
        Some(DnsAnswer::Error(_) | DnsAnswer::Silence) => Finding::wrong(
            format!("the nameserver does not answer the question for {name}"),
            "It answered before: look at its load, and at packets that are lost on the way",
        ),
    }
}

/// Whether a port of a Service is there.
#[must_use]
pub fn service(target: &CheckTarget, connected: &ConnectResult) -> Finding {
    connection(
        target,
        connected,
        "Look whether the proxy of Services (kube-proxy) runs on this node and has rules for this address, and whether the \
         Service has endpoints",
    )
}

/// Whether the API server is there.
#[must_use]
pub fn api_server(target: &CheckTarget, connected: &ConnectResult) -> Finding {
    connection(
        target,
        connected,
        "The node itself may reach it: look whether a NetworkPolicy or a firewall stops pods, and whether packets of pods are \
         masqueraded on their way out of the node",
    )
}

fn connection(target: &CheckTarget, connected: &ConnectResult, advice: &str) -> Finding {
    let CheckTarget { name, address } = target;
    match connected {
        ConnectResult::Yes(rtt) => Finding::ok(format!(
            "{name} at {address} accepts in {} ms",
            short_millis(*rtt)
        )),
        ConnectResult::Error(error) => {
            Finding::wrong(format!("{name} at {address}: {error}"), advice)
        }
        ConnectResult::Silence => {
            Finding::wrong(format!("{name} at {address} does not answer"), advice)
        }
    }
}

/// Whether a host beyond this node answers.
#[must_use]
pub fn outside(target: &CheckTarget, pinged: PingCheckResult) -> Finding {
    let host = shown(target);
    let advice = "Look whether the node itself reaches it; if so, whether packets of pods are forwarded (net.ipv4.ip_forward, the \
                  policy of the chain FORWARD) and masqueraded on their way out. `rubelet net trace --pod` shows how far they come";
    match pinged {
        PingCheckResult::Answer(rtt) => {
            Finding::ok(format!("{host} answers in {} ms", short_millis(rtt)))
        }
        PingCheckResult::Error(error) => {
            Finding::wrong(format!("{host} is not reached: {error}"), advice)
        }
        PingCheckResult::Silence => {
            Finding::wrong(format!("{host} does not answer echo requests"), advice)
        }
    }
}

/// Whether packets arrive that are as long as the pod's interface allows.
#[must_use]
pub fn mtu(target: &CheckTarget, interface: Option<u32>, found: Option<PathMtu>) -> Finding {
    let host = shown(target);
    let Some(PathMtu { mtu, black_hole }) = found else {
        return Finding::skipped(format!("{host} does not answer"));
    };
    if black_hole {
        return Finding::wrong(
            format!("packets of more than {mtu} bytes to {host} vanish, and no router says so"),
            format!(
                "Connections hang as soon as they send much. Let ICMP \"fragmentation needed\" pass on the way, or set the MTU of \
                 pods to {mtu} (bridge: rubelet.runtime.mtu; otherwise in the configuration of the network)"
            ),
        );
    }
    match interface {
        Some(own) if (mtu as u64) < u64::from(own) => Finding::ok(format!(
            "{mtu} bytes arrive at {host}; the interface takes {own}, and routers say so"
        )),
        _ => Finding::ok(format!("{mtu} bytes arrive at {host}")),
    }
}

fn shown(target: &CheckTarget) -> String {
    let address = target.address.ip();
    match target.name == address.to_string() {
        true => target.name.clone(),
        false => format!("{} ({address})", target.name),
    }
}

#[cfg(test)]
mod tests;
