//! Tests of `host_ports`.

use super::*;

fn pod(name: &str) -> PodRef {
    PodRef {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: String::new(),
    }
}

fn port(host_ip: &str, host_port: u16, protocol: Protocol) -> PortMapping {
    PortMapping {
        protocol,
        container_port: 80,
        host_port,
        host_ip: host_ip.parse().ok(),
    }
}

#[test]
fn a_clash_names_both_pods() {
    let mut ports = HostPorts::default();
    let web = [port("", 8080, Protocol::Tcp)];
    ports.take("s1", &pod("web"), &web).unwrap();
    let error = ports
        .take("s2", &pod("shop"), &web)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("default/web") && error.contains("default/shop"),
        "{error}"
    );
    assert!(error.contains("8080/tcp"), "{error}");
    ports.release("s1", &web);
    ports.take("s2", &pod("shop"), &web).unwrap();
}

#[test]
fn only_the_same_protocol_and_address_clash() {
    let mut ports = HostPorts::default();
    ports
        .take("s1", &pod("a"), &[port("192.0.2.1", 53, Protocol::Udp)])
        .unwrap();
    for free in [
        port("192.0.2.1", 53, Protocol::Tcp),
        port("192.0.2.2", 53, Protocol::Udp),
        port("fd00::1", 53, Protocol::Udp),
    ] {
        ports
            .take("s2", &pod("b"), std::slice::from_ref(&free))
            .unwrap();
        ports.release("s2", &[free]);
    }
    for taken in [
        port("192.0.2.1", 53, Protocol::Udp),
        port("", 53, Protocol::Udp),
        port("0.0.0.0", 53, Protocol::Udp),
    ] {
        ports.take("s2", &pod("b"), &[taken]).unwrap_err();
    }
}

#[test]
fn a_refused_pod_takes_nothing_and_the_same_pod_may_ask_again() {
    let mut ports = HostPorts::default();
    ports
        .take("s1", &pod("a"), &[port("", 80, Protocol::Tcp)])
        .unwrap();
    ports
        .take("s1", &pod("a"), &[port("", 80, Protocol::Tcp)])
        .unwrap();
    let both = [port("", 81, Protocol::Tcp), port("", 80, Protocol::Tcp)];
    ports.take("s2", &pod("b"), &both).unwrap_err();
    ports.take("s3", &pod("c"), &both[..1]).unwrap();
    let mut twice = [port("", 90, Protocol::Tcp), port("", 90, Protocol::Tcp)];
    ports.take("s4", &pod("d"), &twice).unwrap();
    twice[0].container_port = 81;
    ports.take("s4", &pod("d"), &twice).unwrap_err();
}
