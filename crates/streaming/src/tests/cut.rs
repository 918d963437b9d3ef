//! Networks that are cut, between two network namespaces.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rubelet_cri::v1;
use rubelet_host::{
    netlink::{Address, Changes, RouteSocket, Veth},
    netns,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    fixture::{Echo, upgraded, upgraded_over},
    front::{endless, serve_one},
};
use crate::{
    RemoteProcess, SessionKind, SessionTarget, StdStreams,
    client::{process, upgrade_headers},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A network namespace with a link to that of the node.
struct Neighbour {
    netns: OwnedFd,
    link: String,
    node: IpAddr,
    own: IpAddr,
}

fn apply(changes: Changes) {
    let mut socket = RouteSocket::open().unwrap();
    socket
        .apply(changes, || "change the network".to_owned())
        .unwrap();
}

fn address(link: &str, address: IpAddr) {
    let index = RouteSocket::open()
        .unwrap()
        .link(link)
        .unwrap()
        .unwrap()
        .index;
    let mut changes = Changes::default();
    changes
        .add_address(Address {
            link: index,
            address,
            prefix: 24,
        })
        .set_up(link);
    apply(changes);
}

impl Neighbour {
    /// In the network namespace of the node.
    fn of_this(number: u8) -> Self {
        let netns = netns::create().unwrap();
        let link = format!("rbltcut{number}");
        let mut changes = Changes::default();
        changes.add_veth(Veth {
            name: &link,
            mac: [2, 0, 0, 0, number, 1],
            master: None,
            peer: "rbltcut",
            peer_mac: [2, 0, 0, 0, number, 2],
            peer_netns: netns.as_fd(),
            mtu: 1500,
        });
        apply(changes);
        let [node, own] = [1, 2].map(|host| IpAddr::from(Ipv4Addr::new(10, 77, number, host)));
        address(&link, node);
        netns::within(&netns, || address("rbltcut", own)).unwrap();
        Self {
            netns,
            link,
            node,
            own,
        }
    }

    async fn connect(&self, target: SocketAddr) -> TcpStream {
        let connect = || std::net::TcpStream::connect(target).unwrap();
        let stream = netns::within(&self.netns, connect).unwrap();
        stream.set_nonblocking(true).unwrap();
        TcpStream::from_std(stream).unwrap()
    }

    fn listen(&self) -> TcpListener {
        let bind = || std::net::TcpListener::bind((self.own, 0)).unwrap();
        let listener = netns::within(&self.netns, bind).unwrap();
        listener.set_nonblocking(true).unwrap();
        TcpListener::from_std(listener).unwrap()
    }

    /// Nobody is told.
    fn cut(&self) {
        let mut changes = Changes::default();
        changes.delete_link(&self.link);
        apply(changes);
    }
}

/// Runs the test in the network namespace of a node.
fn on_node<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    let node = netns::create().unwrap();
    let run = || {
        let mut changes = Changes::default();
        changes.set_up("lo");
        apply(changes);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(test());
    };
    // The thread that enters the namespace has a small stack; its child has a usual one.
    netns::within(&node, || {
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    })
    .unwrap();
}

fn exec(echo: &Arc<Echo>, command: &str) -> SessionTarget {
    let request = v1::ExecRequest {
        cmd: command.split(' ').map(str::to_owned).collect(),
        stdin: true,
        stdout: true,
        ..Default::default()
    };
    SessionTarget::Exec(request, echo.clone())
}

const STREAMS: StdStreams = StdStreams {
    stdin: true,
    stdout: true,
    stderr: false,
    tty: false,
};

async fn session(neighbour: &Neighbour, target: SocketAddr) -> RemoteProcess {
    let stream = neighbour.connect(target).await;
    let of = upgrade_headers(SessionKind::Exec);
    let (io, answer) = upgraded_over(stream, "/session", of).await;
    process(io, &answer, STREAMS).await.unwrap()
}

#[test]
fn a_cut_network_ends_idle_sessions_and_those_with_data_but_not_a_client_that_reads_nothing() {
    on_node(|| async {
        let (cut, other) = (Neighbour::of_this(1), Neighbour::of_this(2));
        let echo = Arc::new(Echo::default());
        let serve = |neighbour: &Neighbour, command: &str| {
            let listener = std::net::TcpListener::bind((neighbour.node, 0)).unwrap();
            listener.set_nonblocking(true).unwrap();
            let listener = TcpListener::from_std(listener).unwrap();
            let address = listener.local_addr().unwrap();
            (
                address,
                serve_one(listener, exec(&echo, command), endless()),
            )
        };
        // More than the kernel's buffers hold: its window is closed for longer than the others are cut.
        let (address, reads_nothing) = serve(&other, "many 50000000");
        let mut paused = session(&other, address).await;

        let (address, idle) = serve(&cut, "sleep");
        let mut idle_client = session(&cut, address).await;
        idle_client.stdout.as_mut().unwrap().read().await.unwrap();
        let (address, busy) = serve(&cut, "many 50000000");
        let mut busy_client = session(&cut, address).await;
        busy_client.stdout.as_mut().unwrap().read().await.unwrap();
        cut.cut();
        for ended in [idle, busy] {
            timeout(PATIENCE, ended).await.unwrap().unwrap();
        }
        let left = |one: &str| !echo.ended.lock().iter().any(|ended| ended == one);
        assert!(!left("sleep"), "its process is told");

        assert!(!reads_nothing.is_finished());
        let stdout = paused.stdout.as_mut().unwrap();
        let mut total = 0;
        while let Some(bytes) = stdout.read().await.unwrap() {
            total += bytes.len();
        }
        assert_eq!(total, 50_000_000);
        assert_eq!(paused.exit.await.unwrap().code(), Ok(0));
        reads_nothing.await.unwrap();
    });
}

#[test]
fn a_cut_network_to_the_runtime_is_the_end_that_its_client_is_told() {
    on_node(|| async {
        let runtime = Neighbour::of_this(1);
        let echo = Arc::new(Echo::default());
        let listener = runtime.listen();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        serve_one(listener, exec(&echo, "sleep"), endless());

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = format!("http://{}/session", listener.local_addr().unwrap());
        let target = SessionTarget::Url {
            url: url.parse().unwrap(),
            kind: SessionKind::Exec,
            streams: STREAMS,
            ports: Vec::new(),
        };
        let ended = serve_one(listener, target, endless());
        let (io, answer) = upgraded(&front, upgrade_headers(SessionKind::Exec)).await;
        let mut client = process(io, &answer, STREAMS).await.unwrap();
        client.stdout.as_mut().unwrap().read().await.unwrap();
        runtime.cut();
        let exit = timeout(PATIENCE, client.exit).await.unwrap();
        let told = exit.unwrap().code().unwrap_err().to_string();
        let expected = "the connection to the container runtime was lost";
        assert!(told.contains(expected), "{told}");
        timeout(PATIENCE, ended).await.unwrap().unwrap();
    });
}
