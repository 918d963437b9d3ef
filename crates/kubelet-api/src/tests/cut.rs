//! The network to a client is cut.

use std::{
    net::{IpAddr, Ipv4Addr},
    os::fd::AsFd as _,
    time::Duration,
};

use rubelet_host::{
    netlink::{Address, Changes, RouteSocket, Veth},
    netns,
};
use rubelet_server::testing::WebSocket;
use tokio::net::TcpStream;

use super::server::{Server, Setup};

const NODE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 1, 1));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 1, 2));

fn apply(change: impl FnOnce(&mut Changes)) {
    let mut changes = Changes::default();
    change(&mut changes);
    let mut socket = RouteSocket::open().unwrap();
    socket
        .apply(changes, || "change the network".to_owned())
        .unwrap();
}

fn set_up(name: &str, address: IpAddr) {
    let link = RouteSocket::open().unwrap().link(name).unwrap().unwrap();
    let address = Address {
        link: link.index,
        address,
        prefix: 24,
    };
    apply(|changes| {
        changes.add_address(address).set_up(name);
    });
}

#[test]
fn a_cut_network_ends_a_session_of_the_port() {
    let (node, elsewhere) = (netns::create().unwrap(), netns::create().unwrap());
    let connect = |address| {
        let connect = || std::net::TcpStream::connect(address).unwrap();
        let stream = netns::within(&elsewhere, connect).unwrap();
        stream.set_nonblocking(true).unwrap();
        TcpStream::from_std(stream).unwrap()
    };
    let test = async {
        apply(|changes| {
            changes.add_veth(Veth {
                name: "rbltcut",
                mac: [2, 0, 0, 0, 0, 1],
                master: None,
                peer: "rbltcut",
                peer_mac: [2, 0, 0, 0, 0, 2],
                peer_netns: elsewhere.as_fd(),
                mtu: 1500,
            });
        });
        set_up("rbltcut", NODE);
        netns::within(&elsewhere, || set_up("rbltcut", CLIENT)).unwrap();
        let server = Server::with(Setup {
            listens: Some((NODE, 0).into()),
            ..Setup::default()
        })
        .await;
        let ann = server.authority.client("ann", &[]);
        let stream = server.connect_over(connect(server.address), Some(&ann));
        let exec = "POST /exec/default/web/a?command=cat&input=1&output=1";
        let stream = stream.await.unwrap();
        let mut session = WebSocket::open(stream, exec, "v5.channel.k8s.io", "").await;
        session.echo("hello").await;
        apply(|changes| {
            changes.delete_link("rbltcut");
        });
        let ended = async {
            while !server.notes.take().contains(&"ended exec".to_owned()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
        ended.expect("the session outlived its network");
    };
    let run = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(test);
    };
    // The thread that enters a namespace has a small stack; its child has a usual one.
    let child = || {
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    };
    netns::within(&node, child).unwrap();
}
