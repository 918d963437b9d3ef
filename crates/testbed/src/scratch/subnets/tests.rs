//! Tests of `subnets`.

use std::process::Command;

use super::*;
use crate::packages::IP;

fn subnet(text: &str) -> Subnet {
    let (address, prefix) = text.split_once('/').unwrap();
    Subnet {
        address: address.parse::<Ipv4Addr>().unwrap().to_bits(),
        prefix: prefix.parse().unwrap(),
    }
}

#[test]
fn ranges_with_a_route_are_not_used() {
    for (routes, taken, chosen) in [
        (&[][..], &[][..], "10.215.1.0/24"),
        (&[], &[1, 2], "10.215.3.0/24"),
        (&["10.215.1.0/24"], &[], "10.215.2.0/24"),
        (&["10.215.0.0/16"], &[], "10.179.1.0/24"),
        (&["10.88.0.0/16", "172.17.0.0/16"], &[], "10.215.1.0/24"),
        (&["10.0.0.0/8"], &[], "172.29.1.0/24"),
        (
            &["10.0.0.0/8", "172.16.0.0/12", "192.168.1.7/32"],
            &[],
            "192.168.2.0/24",
        ),
        (
            &["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
            &[1],
            "198.18.2.0/24",
        ),
    ] {
        let routes: Vec<_> = routes.iter().map(|text| subnet(text)).collect();
        let (found, _) = choose(&routes, taken).unwrap();
        assert_eq!(found.to_string(), chosen, "{routes:?}");
    }
    assert_eq!(
        choose(&[subnet("128.0.0.0/1"), subnet("0.0.0.0/1")], &[]),
        None
    );
}

#[test]
fn ranges_of_podman_docker_and_vpns_are_avoided() {
    if !rubelet_needs::root() {
        return;
    }
    let chosen = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        for (name, address) in [
            ("podman0", "10.88.0.1/16"),
            ("docker0", "172.17.0.1/16"),
            ("tun0", "10.215.0.2/15"),
        ] {
            for words in [
                &["link", "add", name, "type", "bridge"][..],
                &["address", "add", address, "dev", name],
                &["link", "set", name, "up"],
            ] {
                assert!(Command::new(IP).args(words).status().unwrap().success());
            }
        }
        (free(&[]).unwrap().0, free_wide().unwrap())
    });
    let (chosen, wide) = chosen.join().unwrap();
    assert_eq!(chosen.to_string(), "10.179.1.0/24");
    assert_eq!(wide.to_string(), "10.179.248.0/21");
}
