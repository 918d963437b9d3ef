//! Agents that die, hosts that lose things, records that are damaged.

use std::{collections::BTreeSet, fs};

use rubelet_cni::{NetworkRequest, NetworkSettings};
use rubelet_host::{
    netlink::{Changes, RouteSocket},
    netns,
    nft::{TableFamily, has_table},
};

use crate::world::{BRIDGE, Pod, World, at, ip, links, live, reach, tcp, veths, veths_become};

fn delete(name: &str) {
    let mut changes = Changes::default();
    changes.delete_link(name);
    RouteSocket::open()
        .unwrap()
        .apply(changes, || format!("remove {name}"))
        .unwrap();
}

#[test]
fn the_next_agent_frees_what_is_left_and_keeps_what_lives() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let stays = Pod::add_with(&network, "stays", vec![tcp(8080, 80)]).await;
        let goes = Pod::add_with(&network, "goes", vec![tcp(8081, 81)]).await;
        let listener = stays.listen(80);
        // An agent that died after it made an interface and before it could record it.
        let lost = Pod::add(&network, "lost").await;
        let record = world
            .settings
            .state_dir
            .join("attachments/lost-sandbox.json");
        fs::remove_file(record).unwrap();
        let half = world.settings.state_dir.join("attachments/.half.json.tmp");
        fs::write(&half, "rubelet").unwrap();
        drop(network);

        let network = world.network();
        let freed = network.reconcile(&live(&[&stays])).await.unwrap();
        assert!(
            freed.iter().any(|line| line.contains("default/goes")),
            "{freed:?}"
        );
        let name = lost.result.host_interface.as_ref().unwrap();
        assert!(freed.iter().any(|line| line.contains(name)), "{freed:?}");
        assert_eq!(veths().len(), 1);
        assert!(!half.exists());
        network.check(&stays.request).await.unwrap();
        assert!(reach(at(ip("127.0.0.1"), 8080), &listener).is_some());
        assert_eq!(
            network.reconcile(&live(&[&stays])).await.unwrap(),
            Vec::<String>::new()
        );
        // What was freed can be had.
        Pod::add_with(&network, "new", vec![tcp(8081, 81)]).await;
        drop(goes);
    });
}

#[test]
fn adding_once_more_changes_nothing_and_mends_what_is_broken() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let pod = Pod::add(&network, "web").await;
        let index = pod.link("eth0").unwrap().index;
        let listener = pod.listen(80);
        let again = network.add(&pod.request).await.unwrap();
        assert_eq!(again, pod.result);
        assert_eq!(pod.link("eth0").unwrap().index, index);
        // An agent that died in the middle: a record without an interface, or half of one.
        delete(pod.result.host_interface.as_ref().unwrap());
        assert!(network.check(&pod.request).await.is_err());
        let network = world.network();
        assert_eq!(network.add(&pod.request).await.unwrap(), pod.result);
        assert!(reach(at(pod.ip(), 80), &listener).is_some());
        network.check(&pod.request).await.unwrap();
    });
}

#[test]
fn a_pod_goes_without_its_network_namespace() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let pod = Pod::add_with(&network, "web", vec![tcp(8080, 80)]).await;
        let sandbox = pod.request.sandbox.clone();
        drop(pod);
        let network = world.network();
        let gone = NetworkRequest {
            sandbox,
            ..NetworkRequest::default()
        };
        network.del(&gone).await.unwrap();
        veths_become(0);
        Pod::add_with(&network, "next", vec![tcp(8080, 80)]).await;
    });
}

#[test]
fn a_failed_add_leaves_nothing() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let mut pod = Pod::alone("web");
        // Another program has created an eth0 there.
        let pod_end = Pod::alone("other");
        let mut changes = Changes::default();
        use std::os::fd::AsFd;
        changes.add_veth(rubelet_host::netlink::Veth {
            name: "eth0",
            mac: [2, 0, 0, 0, 0, 1],
            master: None,
            peer: "rbtpeer",
            peer_mac: [2, 0, 0, 0, 0, 2],
            peer_netns: pod_end.netns.as_fd(),
            mtu: 1500,
        });
        pod.inside(|| {
            RouteSocket::open()
                .unwrap()
                .apply(changes, || "an eth0".to_owned())
                .unwrap();
        });
        let error = network.add(&pod.request).await.unwrap_err().to_string();
        assert!(
            error.contains("eth0") && error.contains("default/web"),
            "{error}"
        );
        veths_become(0);
        let records = world.settings.state_dir.join("attachments");
        assert_eq!(fs::read_dir(records).unwrap().count(), 0);
        pod.request.netns = world.path("nowhere");
        let error = network.add(&pod.request).await.unwrap_err().to_string();
        assert!(error.contains("nowhere"), "{error}");
    });
}

#[test]
fn a_bridge_that_was_removed_comes_back_with_its_pods() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let network = world.network();
        let (one, two) = (
            Pod::add(&network, "one").await,
            Pod::add(&network, "two").await,
        );
        let listener = two.listen(80);
        delete(BRIDGE);
        network.status().await.unwrap();
        for family in [0, 1] {
            let to = at(two.result.ips[family], 80);
            assert_eq!(one.reaches(to, &listener), Some(one.result.ips[family]));
        }
        // Also when a pod comes before anybody looked.
        delete(BRIDGE);
        let three = Pod::add(&network, "three").await;
        assert!(three.reaches(at(two.ip(), 80), &listener).is_some());
        assert!(one.reaches(at(two.ip(), 80), &listener).is_some());
    });
}

#[test]
fn a_damaged_record_is_reported_and_its_address_not_given_twice() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let first = Pod::add(&network, "first").await;
        let record = world
            .settings
            .state_dir
            .join("attachments/first-sandbox.json");
        fs::write(&record, "rubelet-record half").unwrap();
        fs::remove_file(world.settings.state_dir.join("ranges.json")).unwrap();
        let network = world.network();
        network.reconcile(&live(&[&first])).await.unwrap();
        let warnings = network.warnings().await;
        assert!(
            warnings
                .iter()
                .any(|line| line.contains("first-sandbox.json")),
            "{warnings:?}"
        );
        let second = Pod::add(&network, "second").await;
        assert_ne!(first.ip(), second.ip());
        let listener = first.listen(80);
        assert!(second.reaches(at(first.ip(), 80), &listener).is_some());
    });
}

#[test]
fn names_that_cannot_be_are_refused() {
    World::run(&[], async |world| {
        let mut settings: NetworkSettings = world.settings.clone();
        for name in ["", "a/b", "0bridge", "longer-than-fifteen", "a b"] {
            settings.bridge_name = name.to_owned();
            rubelet_cni::network(settings.clone())
                .status()
                .await
                .unwrap_err();
        }
        let network = world.network();
        let mut pod = Pod::alone("web");
        for sandbox in ["", "../x", "a/b", ".hidden", "a b"] {
            pod.request.sandbox = sandbox.to_owned();
            network.add(&pod.request).await.unwrap_err();
        }
        assert_eq!(veths(), Vec::<String>::new());
        assert_eq!(links().len(), 1);
        network.reconcile(&BTreeSet::new()).await.unwrap();
        drop(netns::create().unwrap());
    });
}

/// As on a kernel without nftables: only the owner of the table may change it.
#[test]
fn without_nftables_pods_start_and_host_ports_are_refused() {
    World::run(&["10.99.0.0/16"], async |world| {
        let owner = crate::netfilter::own_table(TableFamily::Inet);
        let network = world.network();
        network.status().await.unwrap();
        let pod = Pod::add(&network, "plain").await;
        let listener = pod.listen(80);
        assert!(reach(at(pod.ip(), 80), &listener).is_some());
        let warnings = network.warnings().await.join(" ");
        assert!(warnings.contains("nftables"), "{warnings}");
        let mut with_port = Pod::alone("web");
        with_port.request.port_mappings = vec![tcp(8080, 80)];
        let error = network
            .add(&with_port.request)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("nftables") && error.contains("default/web"),
            "{error}"
        );
        veths_become(1);
        network.del(&pod.request).await.unwrap();
        // It works again once it can.
        drop(owner);
        network.add(&with_port.request).await.unwrap();
        assert_eq!(network.warnings().await, Vec::<String>::new());
    });
}

#[test]
fn without_the_rules_for_senders_no_new_pod_starts() {
    World::run(&["10.99.0.0/16"], async |world| {
        let owner = crate::netfilter::own_table(TableFamily::Bridge);
        let network = world.network();
        network.status().await.unwrap();
        let mut pod = Pod::alone("web");
        pod.request.port_mappings = vec![tcp(8080, 80)];
        let error = network.add(&pod.request).await.unwrap_err().to_string();
        assert!(
            error.contains("default/web") && error.contains("addresses"),
            "{error}"
        );
        assert_eq!(pod.link("eth0"), None);
        veths_become(0);
        let warnings = network.warnings().await.join(" ");
        assert!(warnings.contains("addresses of other pods"), "{warnings}");
        drop(owner);
        network.add(&pod.request).await.unwrap();
        assert_eq!(network.warnings().await, Vec::<String>::new());
    });
}

#[test]
fn the_rules_are_kept_for_pods_from_before_there_was_a_cni_configuration() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let _pod = Pod::add(&network, "old").await;
        fs::create_dir_all(&world.settings.cni_conf_dir).unwrap();
        fs::write(world.settings.cni_conf_dir.join("10-new.conflist"), "{").unwrap();
        for family in [TableFamily::Inet, TableFamily::Bridge] {
            crate::netfilter::delete_table(family);
            network.status().await.unwrap_err();
            assert!(has_table(family, BRIDGE).unwrap());
        }
    });
}
