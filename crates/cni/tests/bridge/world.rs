//! A host and pods, each in a network namespace of its own.

use std::{
    collections::BTreeSet,
    future::Future,
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use rubelet_cni::{
    NetworkRequest, NetworkResult, NetworkSettings, PodNetwork, PortMapping, Protocol, network,
};
use rubelet_host::{
    netlink::{Address, Changes, Link, RouteSocket, Veth},
    netns,
};

/// The name of the tests' bridge.
pub(crate) const BRIDGE: &str = "rbt0";

const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// The directories of one runtime.
pub(crate) struct World {
    dir: tempfile::TempDir,
    pub(crate) settings: NetworkSettings,
}

impl World {
    /// Runs `act` in a network namespace of its own, which stands for the host.
    pub(crate) fn run<F: Future<Output = ()>>(
        subnets: &[&str],
        act: impl FnOnce(World) -> F + Send,
    ) {
        let host = netns::create().unwrap();
        netns::within(&host, || {
            switch_on("lo");
            // Threads stay in the namespace of the one that made them; this one's stack is small.
            std::thread::scope(|scope| {
                let test = scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_multi_thread()
                        .worker_threads(2)
                        .enable_all()
                        .build()
                        .unwrap();
                    runtime.block_on(act(World::new(subnets)));
                });
                test.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
        })
        .unwrap();
    }

    fn new(subnets: &[&str]) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("rbt-net-")
            .tempdir()
            .unwrap();
        let mut settings = NetworkSettings::new(dir.path().join("network"));
        settings.cni_conf_dir = dir.path().join("net.d");
        settings.cni_cache_dir = dir.path().join("cni");
        settings.bridge_name = BRIDGE.to_owned();
        settings.subnets = subnets.iter().map(|text| text.parse().unwrap()).collect();
        Self { dir, settings }
    }

    /// The network as an agent that starts now sees it.
    pub(crate) fn network(&self) -> Arc<dyn PodNetwork> {
        network(self.settings.clone())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A pod: nothing but a network namespace.
pub(crate) struct Pod {
    pub(crate) netns: OwnedFd,
    pub(crate) request: NetworkRequest,
    pub(crate) result: NetworkResult,
}

impl Pod {
    /// A pod that isn't on the network yet.
    pub(crate) fn alone(name: &str) -> Self {
        let netns = netns::create().unwrap();
        netns::within(&netns, || switch_on("lo")).unwrap();
        let request = NetworkRequest {
            sandbox: format!("{name}-sandbox"),
            netns: format!("/proc/{}/fd/{}", std::process::id(), netns.as_raw_fd()).into(),
            pod_name: name.to_owned(),
            pod_namespace: "default".to_owned(),
            pod_uid: format!("uid-{name}"),
            ..NetworkRequest::default()
        };
        Self {
            netns,
            request,
            result: NetworkResult::default(),
        }
    }

    pub(crate) async fn add(network: &Arc<dyn PodNetwork>, name: &str) -> Self {
        Self::add_with(network, name, Vec::new()).await
    }

    pub(crate) async fn add_with(
        network: &Arc<dyn PodNetwork>,
        name: &str,
        ports: Vec<PortMapping>,
    ) -> Self {
        let mut pod = Self::alone(name);
        pod.request.port_mappings = ports;
        pod.result = network.add(&pod.request).await.unwrap();
        pod
    }

    pub(crate) fn ip(&self) -> IpAddr {
        self.result.ips[0]
    }

    /// Runs `act` inside.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        netns::within(&self.netns, act).unwrap()
    }

    pub(crate) fn link(&self, name: &str) -> Option<Link> {
        self.inside(|| RouteSocket::open().unwrap().link(name).unwrap())
    }

    /// Waits until it has this interface no more: removing continues in the background.
    pub(crate) fn loses_link(&self, name: &str) {
        look_until(|| self.link(name).map(|link| format!("{link:?}")));
    }

    /// Listens inside on all addresses of both families.
    pub(crate) fn listen(&self, port: u16) -> TcpListener {
        self.inside(|| {
            TcpListener::bind(format!("[::]:{port}").parse::<SocketAddr>().unwrap()).unwrap()
        })
    }

    pub(crate) fn udp(&self, port: u16) -> UdpSocket {
        let socket = self.inside(|| UdpSocket::bind(("0.0.0.0", port)).unwrap());
        socket.set_read_timeout(Some(REMOVAL_TIMEOUT)).unwrap();
        socket
    }

    /// Sends a datagram, which may go nowhere.
    pub(crate) fn tell(&self, to: SocketAddr, text: &str) {
        let unspecified = match to {
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        self.inside(|| {
            let socket = UdpSocket::bind(unspecified).unwrap();
            let _ = socket.send_to(text.as_bytes(), to);
        });
    }

    /// Whether a connection from inside succeeds, and the address that the listener sees.
    pub(crate) fn reaches(&self, to: SocketAddr, listener: &TcpListener) -> Option<IpAddr> {
        self.inside(|| reach(to, listener))
    }
}

/// Whether a connection succeeds, both ways, and the address that the listener sees.
pub(crate) fn reach(to: SocketAddr, listener: &TcpListener) -> Option<IpAddr> {
    let mut client = TcpStream::connect_timeout(&to, REMOVAL_TIMEOUT).ok()?;
    listener.set_nonblocking(false).unwrap();
    let (mut server, from) = listener.accept().unwrap();
    server.set_read_timeout(Some(REMOVAL_TIMEOUT)).unwrap();
    client.set_read_timeout(Some(REMOVAL_TIMEOUT)).unwrap();
    client.write_all(b"ping").unwrap();
    let mut bytes = [0; 4];
    server.read_exact(&mut bytes).ok()?;
    server.write_all(b"pong").unwrap();
    client.read_exact(&mut bytes).ok()?;
    assert_eq!(&bytes, b"pong");
    Some(from.ip().to_canonical())
}

/// Waits until the bridge forwards frames of these pods: it does so once their interfaces have a
/// carrier. Until then a datagram may be lost.
pub(crate) fn settle(pods: &[&Pod]) {
    let gateway = at(ip("10.99.0.1"), 7002);
    let listener = TcpListener::bind(gateway).unwrap();
    for pod in pods {
        assert!(pod.reaches(gateway, &listener).is_some());
    }
}

/// Whether a connection succeeds, however busy the machine is.
pub(crate) fn open(to: SocketAddr) -> bool {
    TcpStream::connect_timeout(&to, REMOVAL_TIMEOUT).is_ok()
}

/// Whether a connection is refused, or times out after a short time.
pub(crate) fn closed(to: SocketAddr) -> bool {
    TcpStream::connect_timeout(&to, Duration::from_millis(300)).is_err()
}

pub(crate) fn at(ip: IpAddr, port: u16) -> SocketAddr {
    (ip, port).into()
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn tcp(host_port: u16, container_port: u16) -> PortMapping {
    PortMapping {
        protocol: Protocol::Tcp,
        container_port,
        host_port,
        host_ip: None,
    }
}

pub(crate) fn live(pods: &[&Pod]) -> BTreeSet<String> {
    pods.iter().map(|pod| pod.request.sandbox.clone()).collect()
}

pub(crate) fn switch_on(name: &str) {
    let mut changes = Changes::default();
    changes.set_up(name);
    RouteSocket::open()
        .unwrap()
        .apply(changes, || format!("switch {name} on"))
        .unwrap();
}

/// Sets whether frames on bridges pass the rules for packets (`br_netfilter`). Tells whether they do.
pub(crate) fn call_netfilter(value: &str) -> bool {
    let mut calls = false;
    for name in ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"] {
        let path = std::path::Path::new("/proc/sys/net/bridge").join(name);
        if path.exists() {
            std::fs::write(path, value).unwrap();
            calls = value == "1";
        }
    }
    calls
}

/// The host's interfaces.
pub(crate) fn links() -> Vec<Link> {
    RouteSocket::open().unwrap().links().unwrap()
}

/// The pairs' ends on the host.
pub(crate) fn veths() -> Vec<String> {
    links()
        .into_iter()
        .filter(|link| link.kind == "veth")
        .map(|link| link.name)
        .collect()
}

/// Waits until the host has this many ends of pairs.
pub(crate) fn veths_become(count: usize) {
    look_until(|| {
        let veths = veths();
        (veths.len() != count).then(|| format!("{veths:?} instead of {count}"))
    });
}

/// Looks until nothing is wrong any more.
fn look_until(mut wrong: impl FnMut() -> Option<String>) {
    let mut tries = 0;
    while let Some(wrong) = wrong() {
        tries += 1;
        assert!(tries < 5000, "{wrong}");
        // Each look takes the kernel's lock, so this waits for the thread that removes interfaces.
        std::thread::yield_now();
    }
}

/// A machine outside: a network namespace behind an interface of the host that is no bridge, with
/// addresses of both families.
pub(crate) fn outside(host_end: &str, addresses: [(&str, &str); 2]) -> OwnedFd {
    use std::os::fd::AsFd;
    let machine = netns::create().unwrap();
    let mut changes = Changes::default();
    changes
        .add_veth(Veth {
            name: host_end,
            mac: [2, 0, 0, 0, 0, 1],
            master: None,
            peer: "lan0",
            peer_mac: [2, 0, 0, 0, 0, 2],
            peer_netns: machine.as_fd(),
            mtu: 1500,
        })
        .set_up(host_end);
    let mut socket = RouteSocket::open().unwrap();
    socket.apply(changes, || "a wire".to_owned()).unwrap();
    let link = socket.link(host_end).unwrap().unwrap().index;
    let wire = |socket: &mut RouteSocket, link: u32, addresses: [&str; 2]| {
        let mut changes = Changes::default();
        for (address, prefix) in addresses.iter().zip([24, 64]) {
            changes.add_address(Address {
                link,
                address: ip(address),
                prefix,
            });
        }
        socket.apply(changes, || "addresses".to_owned()).unwrap();
    };
    wire(&mut socket, link, [addresses[0].0, addresses[1].0]);
    netns::within(&machine, || {
        switch_on("lo");
        switch_on("lan0");
        let mut socket = RouteSocket::open().unwrap();
        let link = socket.link("lan0").unwrap().unwrap().index;
        wire(&mut socket, link, [addresses[0].1, addresses[1].1]);
    })
    .unwrap();
    machine
}
