//! The kernel takes what is asked for, and passes packets accordingly.

use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
};

use super::*;
use crate::{
    netlink::{Changes, RouteSocket},
    netns,
};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Runs in a network namespace of its own with loopback up.
fn isolated(act: impl FnOnce() + Send) {
    let netns = netns::create().unwrap();
    netns::within(&netns, || {
        let mut changes = Changes::default();
        changes.set_up("lo");
        RouteSocket::open()
            .unwrap()
            .apply(changes, || "switch lo on".to_owned())
            .unwrap();
        act();
    })
    .unwrap();
}

fn translation(batch: &mut Batch<'_>) {
    batch
        .add_table()
        .delete_table()
        .add_table()
        .add_set(Set {
            name: "ports4",
            kind: SetKind::Ports(Family::V4),
        })
        .add_set(Set {
            name: "on6",
            kind: SetKind::AddressPorts(Family::V6),
        })
        .add_set(Set {
            name: "self4",
            kind: SetKind::Pairs(Family::V4),
        })
        .add_chain("ports", ChainKind::Plain)
        .add_chain("output", ChainKind::Nat(Hook::Output, -100))
        .add_chain("post", ChainKind::Nat(Hook::Postrouting, 100))
        .add_chain("guard", ChainKind::Filter(Hook::Prerouting, -300))
        .add_rule(
            "guard",
            &[
                Expression::From("rbt0"),
                Expression::Is(Family::V4),
                Expression::Destination(ip("127.0.0.0"), 8, true),
                Expression::Drop,
            ],
        )
        .add_rule(
            "output",
            &[Expression::DestinationIsLocal, Expression::Jump("ports")],
        )
        .add_rule(
            "ports",
            &[
                Expression::Is(Family::V4),
                Expression::LoadProtocol(0),
                Expression::LoadPort(1),
                Expression::Map("ports4"),
                Expression::Redirect(Family::V4),
            ],
        )
        .add_rule(
            "ports",
            &[
                Expression::Is(Family::V6),
                Expression::LoadDestination(Family::V6, 0),
                Expression::LoadProtocol(4),
                Expression::LoadPort(5),
                Expression::Map("on6"),
                Expression::Redirect(Family::V6),
            ],
        )
        .add_rule(
            "post",
            &[
                Expression::Is(Family::V4),
                Expression::LoadSource(Family::V4, 0),
                Expression::LoadDestination(Family::V4, 1),
                Expression::In("self4"),
                Expression::Masquerade(false),
            ],
        )
        .add_rule(
            "post",
            &[
                Expression::To("rbt*"),
                Expression::Is(Family::V4),
                Expression::Source(ip("10.7.0.0"), 17, true),
                Expression::Destination(ip("10.7.0.0"), 17, false),
                Expression::Masquerade(true),
            ],
        );
}

fn mapping(port: u16, to: &str, to_port: u16) -> (Vec<u8>, Vec<u8>) {
    (
        Bytes::default().protocol(6).port(port).done(),
        Bytes::default().address(ip(to)).port(to_port).done(),
    )
}

#[test]
fn connections_follow_the_map() {
    isolated(|| {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 9), 0)).unwrap();
        let SocketAddr::V4(address) = listener.local_addr().unwrap() else {
            unreachable!("bound to IPv4")
        };
        let element = mapping(8080, "127.0.0.9", address.port());
        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        translation(&mut batch);
        batch
            .add_elements("ports4", std::slice::from_ref(&element))
            .add_elements(
                "on6",
                &[(
                    Bytes::default()
                        .address(ip("::1"))
                        .protocol(17)
                        .port(53)
                        .done(),
                    Bytes::default().address(ip("fd00::2")).port(53).done(),
                )],
            )
            .add_elements(
                "self4",
                &[(
                    Bytes::default()
                        .address(ip("10.7.0.2"))
                        .address(ip("10.7.0.2"))
                        .done(),
                    Vec::new(),
                )],
            );
        batch.commit(|| "make the table".to_owned()).unwrap();
        assert!(has_table(TableFamily::Inet, "rbt0").unwrap());

        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, 8080)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");

        // The same once more is no error; another value is, and nothing of the batch happens.
        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        batch.add_elements("ports4", std::slice::from_ref(&element));
        batch.commit(|| "repeat".to_owned()).unwrap();
        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        batch
            .add_elements("ports4", &[mapping(8081, "127.0.0.9", address.port())])
            .add_elements("ports4", &[mapping(8080, "127.0.0.8", 1)]);
        batch.commit(|| "clash".to_owned()).unwrap_err();
        TcpStream::connect((Ipv4Addr::LOCALHOST, 8081)).unwrap_err();

        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        batch.delete_elements("ports4", std::slice::from_ref(&element));
        batch.commit(|| "remove".to_owned()).unwrap();
        TcpStream::connect((Ipv4Addr::LOCALHOST, 8080)).unwrap_err();
        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        batch.delete_elements("ports4", std::slice::from_ref(&element));
        let error = batch.commit(|| "remove it again".to_owned()).unwrap_err();
        assert!(error.is_missing(), "{error:?}");

        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        batch.delete_table();
        batch.commit(|| "remove the table".to_owned()).unwrap();
        assert!(!has_table(TableFamily::Inet, "rbt0").unwrap());
    });
}

#[test]
fn thousands_of_ports_fit_into_one_transaction() {
    isolated(|| {
        let many: Vec<_> = (1..=5000)
            .map(|port| mapping(port, "10.7.0.2", port))
            .collect();
        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        translation(&mut batch);
        batch.add_elements("ports4", &many);
        batch.commit(|| "make them all".to_owned()).unwrap();
        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        batch.delete_elements("ports4", &many);
        batch.commit(|| "remove them all".to_owned()).unwrap();
    });
}

#[test]
fn remembered_connections_are_forgotten_by_port() {
    isolated(|| {
        let mut batch = Batch::new(TableFamily::Inet, "rbt0");
        translation(&mut batch);
        batch.commit(|| "make the table".to_owned()).unwrap();
        let server = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 5353)).unwrap();
        let client = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.send_to(b"x", server.local_addr().unwrap()).unwrap();
        let listed = || fs::read_to_string("/proc/thread-self/net/nf_conntrack");
        if let Ok(text) = listed() {
            assert!(text.contains("dport=5353"), "{text}");
        }
        assert_eq!(forget(17, &[53]).unwrap(), 0);
        assert_eq!(forget(6, &[5353]).unwrap(), 0);
        assert_eq!(forget(17, &[5353]).unwrap(), 1);
        if let Ok(text) = listed() {
            assert!(!text.contains("dport=5353"), "{text}");
        }
    });
}
