//! Allocation of addresses to pods.

use std::{collections::BTreeSet, sync::Arc};

use rubelet_cni::NetworkError;
use rubelet_host::netns;

use crate::world::{BRIDGE, Pod, World, at, ip, links, live, outside, reach};

#[test]
fn an_address_comes_again_as_late_as_possible_also_for_the_next_agent() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let first = Pod::add(&network, "first").await;
        network.del(&first.request).await.unwrap();
        let second = Pod::add(&network, "second").await;
        assert_ne!(first.ip(), second.ip());
        network.del(&second.request).await.unwrap();
        let network = world.network();
        network.reconcile(&BTreeSet::new()).await.unwrap();
        let third = Pod::add(&network, "third").await;
        assert!(third.ip() > second.ip(), "{} again", third.ip());
    });
}

#[test]
fn a_full_range_is_reported_and_freed_addresses_are_used() {
    World::run(&["10.99.0.0/29"], async |world| {
        let network = world.network();
        let mut pods = Vec::new();
        for number in 0..5 {
            pods.push(Pod::add(&network, &format!("pod{number}")).await);
        }
        let late = Pod::alone("late");
        let error = network.add(&late.request).await.unwrap_err().to_string();
        assert!(
            error.contains("10.99.0.0/29") && error.contains('5'),
            "{error}"
        );
        assert_eq!(late.link("eth0"), None);
        // At once after a pod went, although the kernel is still busy with its interface.
        for number in 0..20 {
            let gone = pods.remove(0);
            network.del(&gone.request).await.unwrap();
            pods.push(Pod::add(&network, &format!("new{number}")).await);
        }
        let addresses: BTreeSet<_> = pods.iter().map(Pod::ip).collect();
        assert_eq!(addresses.len(), 5);
    });
}

#[test]
fn pods_that_come_at_once_get_different_addresses() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let network = world.network();
        let tasks: Vec<_> = (0..60)
            .map(|number| {
                let network = Arc::clone(&network);
                tokio::spawn(async move { Pod::add(&network, &format!("pod{number}")).await })
            })
            .collect();
        let mut pods = Vec::new();
        for task in tasks {
            pods.push(task.await.unwrap());
        }
        let addresses: BTreeSet<_> = pods.iter().flat_map(|pod| pod.result.ips.clone()).collect();
        assert_eq!(addresses.len(), 120);
        let listener = pods[59].listen(80);
        assert!(pods[0].reaches(at(pods[59].ip(), 80), &listener).is_some());
        let tasks: Vec<_> = pods
            .iter()
            .map(|pod| {
                let (network, request) = (Arc::clone(&network), pod.request.clone());
                tokio::spawn(async move { network.del(&request).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        crate::world::veths_become(0);
    });
}

#[test]
fn the_clusters_range_takes_over_for_new_pods() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let old = Pod::add(&network, "old").await;
        let cidrs = [
            "10.77.1.0/24".parse().unwrap(),
            "fd77::/64".parse().unwrap(),
        ];
        network.set_pod_cidrs(&cidrs).await.unwrap();
        let new = Pod::add(&network, "new").await;
        assert_eq!(new.result.ips, [ip("10.77.1.2"), ip("fd77::2")]);
        let (in_old, in_new) = (old.listen(80), new.listen(80));
        assert_eq!(new.reaches(at(old.ip(), 80), &in_old), Some(new.ip()));
        assert_eq!(old.reaches(at(new.ip(), 80), &in_new), Some(old.ip()));
        assert!(reach(at(old.ip(), 80), &in_old).is_some());
        // The next agent continues with it before the cluster says it again.
        let network = world.network();
        network.reconcile(&live(&[&old, &new])).await.unwrap();
        let next = Pod::add(&network, "next").await;
        assert!(
            "10.77.1.0/24"
                .parse::<rubelet_cni::Cidr>()
                .unwrap()
                .contains(next.ip())
        );
        // A range that can't work changes nothing.
        let wrong = ["10.1.0.0/31".parse().unwrap()];
        assert!(matches!(
            network.set_pod_cidrs(&wrong).await,
            Err(NetworkError::Refused(_))
        ));
        assert_eq!(old.reaches(at(new.ip(), 80), &in_new), Some(old.ip()));
        network.status().await.unwrap();
    });
}

#[test]
fn a_range_that_the_host_uses_is_refused() {
    World::run(&["192.0.2.0/26"], async |world| {
        let _lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        let network = world.network();
        let error = network.status().await.unwrap_err().to_string();
        assert!(
            error.contains("192.0.2.0/24") && error.contains("rbtlan"),
            "{error}"
        );
        let pod = Pod::alone("web");
        network.add(&pod.request).await.unwrap_err();
        assert!(!links().iter().any(|link| link.name == BRIDGE));
    });
}

#[test]
fn without_a_range_a_free_one_is_chosen_and_kept() {
    World::run(&[], async |world| {
        let network = world.network();
        let first = Pod::add(&network, "first").await;
        let network = world.network();
        network.reconcile(&live(&[&first])).await.unwrap();
        let second = Pod::add(&network, "second").await;
        let range = |pod: &Pod| rubelet_cni::Cidr::new(pod.ip(), 16).unwrap();
        assert_eq!(range(&first), range(&second));
        assert!(range(&first).capacity() > 1000);
    });
}

#[test]
fn two_runtimes_on_one_host_leave_each_other_alone() {
    World::run(&["10.99.0.0/16"], async |world| {
        let mut settings = world.settings.clone();
        settings.bridge_name = "rbt1".to_owned();
        settings.state_dir = world.path("other");
        settings.subnets = vec!["10.98.0.0/16".parse().unwrap()];
        let (one, two) = (world.network(), rubelet_cni::network(settings));
        let first = Pod::add_with(&one, "first", vec![crate::world::tcp(8080, 80)]).await;
        let second = Pod::add_with(&two, "second", vec![crate::world::tcp(8081, 80)]).await;
        one.reconcile(&live(&[&first])).await.unwrap();
        two.reconcile(&live(&[&second])).await.unwrap();
        let (in_first, in_second) = (first.listen(80), second.listen(80));
        assert!(reach(at(ip("127.0.0.1"), 8080), &in_first).is_some());
        assert!(reach(at(ip("127.0.0.1"), 8081), &in_second).is_some());
        one.reconcile(&BTreeSet::new()).await.unwrap();
        two.check(&second.request).await.unwrap();
        assert!(reach(at(ip("127.0.0.1"), 8081), &in_second).is_some());
        drop(netns::create().unwrap());
    });
}
