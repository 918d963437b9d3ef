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
        .hairpin("rbtv1")
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

    let mut socket_pod = socket(&pod);
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

    let mut changes = Changes::default();
    changes.set_group("rbtv1", 0x5252_0001);
    socket_host.apply(changes, || "condemn".to_owned()).unwrap();
    let mut changes = Changes::default();
    changes.delete_group(0x5252_0001);
    socket_host.apply(changes, || "delete".to_owned()).unwrap();
    assert_eq!(socket_host.link("rbtv1").unwrap(), None);
    assert_eq!(socket_pod.link("eth0").unwrap(), None);
    assert!(socket_host.link("rbt0").unwrap().is_some());
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
fn a_file_without_a_namespace_is_told_from_one_with() {
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
