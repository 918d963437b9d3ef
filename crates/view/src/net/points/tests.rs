//! A node with two pods on a bridge and a way out, as namespaces.

use std::os::fd::AsFd as _;

use rubelet_host::netlink::{Address, Bridge, Changes, Route, Veth};

use super::*;

/// The node, and the network namespaces of two pods and of what is outside.
struct World {
    node: OwnedFd,
    pods: [Arc<OwnedFd>; 2],
    outside: OwnedFd,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Sets up an interface, and a default route by it if there is a gateway.
fn set_up(name: &str, address: &str, gateway: Option<&str>) {
    let mut socket = RouteSocket::open().unwrap();
    let link = socket.link(name).unwrap().unwrap().index;
    let mut changes = Changes::default();
    changes.set_up(name).add_address(Address {
        link,
        address: ip(address),
        prefix: 24,
    });
    if let Some(gateway) = gateway {
        changes.add_route(Route::default_by(ip(gateway), link));
    }
    socket.apply(changes, || format!("set up {name}")).unwrap();
}

impl World {
    fn new() -> Self {
        let world = Self {
            node: netns::create().unwrap(),
            pods: [(); 2].map(|()| Arc::new(netns::create().unwrap())),
            outside: netns::create().unwrap(),
        };
        netns::within(&world.node, || world.link()).unwrap();
        for (pod, address) in world.pods.iter().zip(["10.77.0.2", "10.77.0.3"]) {
            netns::within(pod, || set_up("eth0", address, Some("10.77.0.1"))).unwrap();
        }
        world
    }

    fn link(&self) {
        let mut socket = RouteSocket::open().unwrap();
        let mut changes = Changes::default();
        changes.add_bridge(Bridge {
            name: "rbt0",
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
        });
        socket
            .apply(changes, || "make the bridge".to_owned())
            .unwrap();
        let bridge = socket.link("rbt0").unwrap().unwrap().index;
        let mut changes = Changes::default();
        let ends = [
            ("veth1", &*self.pods[0], Some(bridge)),
            ("veth2", &*self.pods[1], Some(bridge)),
            ("up0", &self.outside, None),
        ];
        for (number, (name, namespace, master)) in (0..).zip(ends) {
            changes.add_veth(Veth {
                name,
                mac: [2, 0, 0, 0, 1, number],
                master,
                peer: "eth0",
                peer_mac: [2, 0, 0, 0, 2, number],
                peer_netns: namespace.as_fd(),
                mtu: 1500,
            });
        }
        changes.set_up("veth1").set_up("veth2");
        socket
            .apply(changes, || "connect the pods".to_owned())
            .unwrap();
        set_up("rbt0", "10.77.0.1", None);
    }

    fn end(&self, pod: usize) -> PathEnd {
        PathEnd {
            name: format!("pod {pod}"),
            namespace: Some(Arc::clone(&self.pods[pod])),
        }
    }

    /// The interfaces from the first pod to a target, with the way of requests, and where they end.
    fn path(&self, target: &str, to: Option<&PathEnd>) -> (Vec<(String, Direction)>, LastHop) {
        let target = SocketAddr::new(ip(target), 0);
        let from = self.end(0);
        let found = netns::within(&self.node, || path(&from, None, target, to));
        let found = found.unwrap().unwrap();
        let points = found.points.into_iter();
        let points = points.map(|point| (point.name, point.requests));
        (points.collect(), found.last_hop)
    }
}

/// The first three interfaces of all that leaves the first pod by the node.
fn out_of_the_pod() -> Vec<(String, Direction)> {
    [
        ("eth0 (pod 0)", Direction::Out),
        ("veth1 (to pod 0)", Direction::In),
        ("rbt0 (bridge, in)", Direction::In),
    ]
    .map(|(name, direction)| (name.to_owned(), direction))
    .to_vec()
}

#[test]
fn what_leaves_the_node_passes_the_interface_of_its_route() {
    if !rubelet_needs::root() {
        return;
    }
    let world = World::new();
    // Nothing leads there yet.
    let before = world.path("192.0.2.9", None);
    assert_eq!(before, (out_of_the_pod(), LastHop::NoRoute));
    let own = world.path("10.77.0.1", None);
    assert_eq!(own.1, LastHop::Target);

    netns::within(&world.node, || {
        set_up("up0", "198.51.100.1", Some("198.51.100.254"));
    })
    .unwrap();
    let (points, last_hop) = world.path("192.0.2.9", None);
    let mut expected = out_of_the_pod();
    let up = "up0 (node, next hop 198.51.100.254)".to_owned();
    expected.push((up, Direction::Out));
    assert_eq!((points, last_hop), (expected, LastHop::Outside));
}

#[test]
fn pods_of_one_network_are_switched_and_do_not_pass_the_bridge_itself() {
    if !rubelet_needs::root() {
        return;
    }
    let world = World::new();
    let to = world.end(1);
    let (points, last_hop) = world.path("10.77.0.3", Some(&to));
    let expected = [
        ("eth0 (pod 0)", Direction::Out),
        ("veth1 (to pod 0)", Direction::In),
        ("veth2 (to pod 1)", Direction::Out),
        ("eth0 (pod 1)", Direction::In),
    ]
    .map(|(name, direction)| (name.to_owned(), direction));
    assert_eq!((points, last_hop), (expected.to_vec(), LastHop::Target));
}
