//! Firewalls of the host that drop forwarded packets.

use std::{collections::BTreeSet, net::TcpListener, process::Command};

use rubelet_cni::PodNetwork;
use rubelet_host::{
    netns,
    nft::{ChainName, Connection, TableFamily},
};

use crate::{
    netfilter::{self, drop_forwarded},
    world::{Pod, World, at, closed, ip, outside, tcp},
};

fn our_rules(family: TableFamily) -> usize {
    let found = Connection::open().unwrap().rules_with_comment(
        &ChainName::iptables_forward(family),
        "rubelet: pods on rbt0",
    );
    found.unwrap().len()
}

async fn warnings(network: &dyn PodNetwork) -> Vec<String> {
    network.status().await.unwrap();
    network.warnings().await
}

#[test]
fn pods_reach_all_on_a_host_where_docker_drops_what_is_forwarded() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        drop_forwarded(&ChainName::iptables_forward(TableFamily::Ip));
        drop_forwarded(&ChainName::iptables_forward(TableFamily::Ip6));
        let network = world.network();
        let one = Pod::add(&network, "one").await;
        let two = Pod::add_with(&network, "two", vec![tcp(8080, 80)]).await;
        let listener = two.listen(80);
        let in_lan = netns::within(&lan, || TcpListener::bind("[::]:82").unwrap()).unwrap();
        let all_reach = || {
            for (family, there) in [(0, "192.0.2.2"), (1, "fd00:2::2")] {
                let pod = one.reaches(at(two.result.ips[family], 80), &listener);
                assert_eq!(pod, Some(one.result.ips[family]));
                assert!(one.reaches(at(ip(there), 82), &in_lan).is_some());
            }
            let from_lan = netns::within(&lan, || {
                crate::world::reach(at(ip("192.0.2.1"), 8080), &listener)
            });
            assert_eq!(from_lan.unwrap(), Some(ip("192.0.2.2")));
        };
        all_reach();
        assert_eq!(warnings(&*network).await, Vec::<String>::new());

        // Nothing is added again and again.
        for _ in 0..3 {
            network.status().await.unwrap();
        }
        assert_eq!(our_rules(TableFamily::Ip), 4);

        // Another program starts again.
        netfilter::flush(&ChainName::iptables_forward(TableFamily::Ip));
        assert_eq!(our_rules(TableFamily::Ip), 0);
        assert_eq!(warnings(&*network).await, Vec::<String>::new());
        all_reach();

        // What an administrator drops stays dropped.
        netfilter::flush(&ChainName::iptables_forward(TableFamily::Ip));
        netfilter::drop_all(&ChainName::iptables_forward(TableFamily::Ip));
        network.status().await.unwrap();
        assert_eq!(our_rules(TableFamily::Ip), 4);
        assert!(one.inside(|| closed(at(two.result.ips[0], 80))));

        // Rules go with the bridge.
        network.del(&one.request).await.unwrap();
        network.del(&two.request).await.unwrap();
        std::fs::create_dir_all(&world.settings.cni_conf_dir).unwrap();
        std::fs::write(
            world.settings.cni_conf_dir.join("10-other.conflist"),
            r#"{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "bridge"}]}"#,
        )
        .unwrap();
        network.reconcile(&BTreeSet::new()).await.unwrap();
        assert_eq!(our_rules(TableFamily::Ip), 0);
        assert_eq!(our_rules(TableFamily::Ip6), 0);
    });
}

#[test]
fn a_chain_of_an_administrators_own_table_is_reported_and_left_alone() {
    World::run(&["10.99.0.0/16"], async |world| {
        drop_forwarded(&ChainName {
            family: TableFamily::Inet,
            table: "firewall".to_owned(),
            chain: "forward".to_owned(),
        });
        let network = world.network();
        let one = Pod::add(&network, "one").await;
        let two = Pod::add(&network, "two").await;
        let _listener = two.listen(80);
        assert!(one.inside(|| closed(at(two.result.ips[0], 80))));
        assert_eq!(
            warnings(&*network).await,
            [
                "the nftables chain inet firewall forward has the policy drop: pods reach only this host unless the chain accepts packets from and to rbt0"
            ]
        );
    });
}

#[test]
fn iptables_shows_the_rules_and_can_change_them() {
    let iptables = |arguments: &[&str]| {
        let made = Command::new("iptables-nft").args(arguments).output();
        made.ok().filter(|output| output.status.success())
    };
    World::run(&["10.99.0.0/16"], async |world| {
        let made = iptables(&["-P", "FORWARD", "DROP"]);
        if !rubelet_needs::have(made.is_some(), "iptables-nft") {
            return;
        }
        let network = world.network();
        assert_eq!(warnings(&*network).await, Vec::<String>::new());
        let shown = || {
            let output = iptables(&["-S", "FORWARD"]).unwrap().stdout;
            String::from_utf8(output).unwrap()
        };
        let rules = shown();
        for rule in [
            "-A FORWARD -i rbt0 -m comment --comment \"rubelet: pods on rbt0\" -j ACCEPT\n",
            "-A FORWARD -o rbt0 -m comment --comment \"rubelet: pods on rbt0\" -j ACCEPT\n",
        ] {
            assert!(rules.contains(rule), "{rules}");
        }
        iptables(&["-D", "FORWARD", "2"]).unwrap();
        assert_ne!(shown(), rules);
        network.status().await.unwrap();
        assert_eq!(shown(), rules);
    });
}
