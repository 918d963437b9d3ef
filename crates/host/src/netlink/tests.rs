//! The kernel's own view of what was asked for, in namespaces made here.

use std::{
    fs,
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
};

use super::*;
use crate::netns;

fn socket(netns: &OwnedFd) -> RouteSocket {
    netns::within(netns, RouteSocket::open).unwrap().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A socket on which a peer other than the kernel sends one reply, and then none.
fn answered_with(datagram: &[u8]) -> (RouteSocket, OwnedFd) {
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (other, own) = socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    send(&other, datagram, SendFlags::empty()).unwrap();
    rustix::net::shutdown(&other, rustix::net::Shutdown::Write).unwrap();
    // Without the other end requests could not even be sent.
    (RouteSocket::from(own), other)
}

/// A message of an answer.
fn answer(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + payload.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(payload);
    bytes
}

#[test]
fn an_answer_that_never_comes_is_an_error() {
    let (mut socket, _other) = answered_with(&[1, 2, 3]);
    let error = socket.links().unwrap_err();
    assert!(matches!(error, NetlinkError::Socket(_)), "{error}");
}

#[test]
fn an_error_number_that_can_not_be_is_an_error() {
    let (mut socket, _other) = answered_with(&answer(2, &i32::MIN.to_ne_bytes()));
    let error = socket.links().unwrap_err();
    assert!(matches!(error, NetlinkError::Refused { .. }), "{error}");
}

#[test]
fn a_bridge_and_a_pair_with_its_other_end_elsewhere() {
    let (host, pod) = (netns::create().unwrap(), netns::create().unwrap());
    let mut socket_host = socket(&host);
    let mut changes = Changes::default();
    changes
        .add_bridge(Bridge {
            name: "rbt0",
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1400,
        })
        .no_link_local("rbt0")
        .set_up("rbt0");
    socket_host
        .apply(changes, || "make a bridge".to_owned())
        .unwrap();
    let bridge = socket_host.link("rbt0").unwrap().unwrap();
    assert_eq!(
        (bridge.kind.as_str(), bridge.mtu, bridge.up),
        ("bridge", 1400, true)
    );
    assert_eq!(bridge.mac, [2, 0, 0, 0, 0, 1]);

    let port = BridgePort {
        hairpin: true,
        learning: false,
        isolated: true,
    };
    let mut changes = Changes::default();
    changes
        .add_veth(Veth {
            name: "rbtv1",
            mac: [2, 0, 0, 0, 0, 2],
            master: Some(bridge.index),
            peer: "eth0",
            peer_mac: [2, 0, 0, 0, 0, 3],
            peer_netns: pod.as_fd(),
            mtu: 1400,
        })
        .set_port("rbtv1", port)
        .describe("rbtv1", "default/web")
        .no_link_local("rbtv1")
        .set_up("rbtv1");
    socket_host
        .apply(changes, || "make a pair".to_owned())
        .unwrap();
    let end = socket_host.link("rbtv1").unwrap().unwrap();
    assert_eq!(
        (end.kind.as_str(), end.master, end.up),
        ("veth", Some(bridge.index), true)
    );
    assert!(end.index > 0);
    assert_eq!((end.port, bridge.port), (Some(port), None));

    let mut socket_pod = socket(&pod);
    set_up_inside(&mut socket_pod);
    let mut changes = Changes::default();
    changes.set_group("rbtv1", 0x5252_0001);
    socket_host
        .apply(changes, || "mark for deletion".to_owned())
        .unwrap();
    let mut changes = Changes::default();
    changes.delete_group(0x5252_0001);
    socket_host.apply(changes, || "delete".to_owned()).unwrap();
    assert_eq!(socket_host.link("rbtv1").unwrap(), None);
    assert_eq!(socket_pod.link("eth0").unwrap(), None);
    assert!(socket_host.link("rbt0").unwrap().is_some());
}

/// Gives the pod's end of the pair addresses, a neighbour and routes, and repeats some of it.
fn set_up_inside(socket_pod: &mut RouteSocket) {
    let inside = socket_pod.link("eth0").unwrap().unwrap();
    assert_eq!(inside.mac, [2, 0, 0, 0, 0, 3]);
    let address = Address {
        link: inside.index,
        address: ip("10.77.0.2"),
        prefix: 16,
    };
    let address6 = Address {
        link: inside.index,
        address: ip("fd77::2"),
        prefix: 64,
    };
    let mut changes = Changes::default();
    changes
        .set_up("eth0")
        .add_address(address)
        .add_address(address6)
        .add_neighbour(inside.index, ip("10.77.0.1"), [2, 0, 0, 0, 0, 1])
        .add_route(Route::default_by(ip("10.77.0.1"), inside.index))
        .add_route(Route::default_by(ip("fd77::1"), inside.index));
    socket_pod
        .apply(changes, || "set eth0 up".to_owned())
        .unwrap();
    let addresses = socket_pod.addresses().unwrap();
    assert!(
        addresses.contains(&address) && addresses.contains(&address6),
        "{addresses:?}"
    );
    let routes = socket_pod.routes().unwrap();
    for gateway in ["10.77.0.1", "fd77::1"] {
        assert!(
            routes
                .iter()
                .any(|route| route.gateway == Some(ip(gateway)) && route.prefix == 0),
            "{routes:?}"
        );
    }
    // Once more changes nothing.
    let mut changes = Changes::default();
    changes
        .add_address(address)
        .add_route(Route::default_by(ip("10.77.0.1"), inside.index));
    socket_pod.apply(changes, || "repeat".to_owned()).unwrap();
}

#[test]
fn refusals_tell_what_was_to_be_done() {
    let host = netns::create().unwrap();
    let mut socket = socket(&host);
    let mut changes = Changes::default();
    changes.delete_link("rbtnone");
    let error = socket
        .apply(changes, || "remove rbtnone".to_owned())
        .unwrap_err();
    assert!(error.is_missing(), "{error:?}");
    assert!(
        error.to_string().starts_with("cannot remove rbtnone"),
        "{error}"
    );
    let bridge = Bridge {
        name: "rbt0",
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
    };
    let mut changes = Changes::default();
    changes.add_bridge(bridge).add_bridge(bridge);
    let error = socket
        .apply(changes, || "make it twice".to_owned())
        .unwrap_err();
    assert!(error.is_exists(), "{error:?}");
    assert!(socket.link("rbt0").unwrap().is_some());
}

#[test]
fn nobody_but_the_kernel_answers() {
    use rustix::net::{
        AddressFamily, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, sendto,
        socket_with,
    };
    let host = netns::create().unwrap();
    netns::within(&host, || {
        let mut socket = RouteSocket::open().unwrap();
        let forger = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        // An end of the list before there is one.
        let mut forged = Messages::default();
        forged.begin(3, 0, &[0; 4]);
        let to = SocketAddrNetlink::new(socket.socket.port(), 0);
        let sent = sendto(&forger, forged.bytes(), SendFlags::empty(), &to);
        assert_eq!(sent, Err(rustix::io::Errno::CONNREFUSED));
        assert!(socket.links().unwrap().iter().any(|link| link.name == "lo"));
    })
    .unwrap();
}

#[test]
fn of_many_interfaces_the_first_are_reported() {
    let pod = netns::create().unwrap();
    let mut maker = socket(&pod);
    let mut changes = Changes::default();
    let names: Vec<String> = (0..300).map(|number| format!("rbt{number}")).collect();
    for name in &names {
        changes.add_bridge(Bridge {
            name,
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
        });
    }
    // More changes than the socket has room for answers, too.
    maker.apply(changes, || "make bridges".to_owned()).unwrap();
    assert_eq!(maker.links().unwrap().len(), 301);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pod));
    let some = netns::interfaces(std::path::Path::new(&path)).unwrap();
    assert_eq!(some.len(), 256);
    assert_eq!(some[0].name, "lo");
}

#[test]
fn a_file_without_a_namespace_is_distinguished_from_one_with() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("net");
    fs::write(&plain, "").unwrap();
    assert!(matches!(
        netns::open(&plain),
        Err(netns::NetnsError::Missing { .. })
    ));
    assert!(matches!(
        netns::open(&dir.path().join("none")),
        Err(netns::NetnsError::Missing { .. })
    ));
    let links = netns::interfaces(std::path::Path::new("/proc/self/ns/net")).unwrap();
    assert!(links.iter().any(|link| link.name == "lo"), "{links:?}");
}
