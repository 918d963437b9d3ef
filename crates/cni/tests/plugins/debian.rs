//! The reference plugins of the CNI project, as Debian packages them.

use std::{fs, path::Path};

use serde_json::json;

use crate::world::{Pod, World, ip, links, reach, tcp, veths};

const PLUGINS: &str = "/usr/lib/cni";

/// Without it there is nothing to test.
#[track_caller]
fn installed() -> bool {
    let there = Path::new(PLUGINS).join("bridge").exists();
    rubelet_needs::have(there, "the package containernetworking-plugins")
}

fn configure(world: &mut World) {
    world.settings.cni_bin_dirs = vec![PLUGINS.into()];
    fs::create_dir_all(&world.settings.cni_conf_dir).unwrap();
    let list = json!({
        "cniVersion": "1.0.0",
        "name": "rbt-debian",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "rbtcni0",
                "isGateway": true,
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": world.path("ipam"),
                    "ranges": [[{"subnet": "10.98.0.0/24"}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "tuning"},
        ],
    });
    fs::write(
        world.settings.cni_conf_dir.join("10-debian.conflist"),
        list.to_string(),
    )
    .unwrap();
}

#[test]
fn pods_come_and_go_by_the_reference_plugins() {
    if !installed() {
        return;
    }
    World::run(&[], async |mut world| {
        configure(&mut world);
        let network = world.network();
        network.status().await.unwrap();
        let pod = Pod::add(&network, "one").await;
        let two = Pod::add(&network, "two").await;
        assert_eq!(pod.result.ips, [ip("10.98.0.2")]);
        assert!(
            pod.result
                .host_interface
                .as_ref()
                .is_some_and(|name| veths().contains(name))
        );
        assert_eq!(pod.result.mac.as_ref().map(String::len), Some(17));
        let listener = pod.listen(80);
        assert!(reach((pod.ip(), 80).into(), &listener).is_some());
        assert_eq!(
            two.reaches((pod.ip(), 80).into(), &listener),
            Some(two.ip())
        );
        network.check(&pod.request).await.unwrap();
        // The built-in bridge is not in the way.
        assert!(!links().iter().any(|link| link.name == crate::world::BRIDGE));

        // The plugin's own words when something is missing.
        pod.inside(|| {
            let mut changes = rubelet_host::netlink::Changes::default();
            changes.delete_link("eth0");
            let mut socket = rubelet_host::netlink::RouteSocket::open().unwrap();
            socket.apply(changes, || "take it away".to_owned()).unwrap();
        });
        let error = network.check(&pod.request).await.unwrap_err().to_string();
        assert!(error.contains("bridge failed (CHECK)"), "{error}");

        let reserved = |address: &str| world.path("ipam/rbt-debian").join(address).exists();
        assert!(reserved("10.98.0.2") && reserved("10.98.0.3"));
        network.del(&pod.request).await.unwrap();
        drop(two.netns);
        // As after a reboot: the namespace is gone, the address is freed all the same.
        network
            .reconcile(&std::collections::BTreeSet::new())
            .await
            .unwrap();
        network.collect_garbage().await.unwrap();
        assert!(!reserved("10.98.0.2") && !reserved("10.98.0.3"));
    });
}

#[test]
fn host_ports_are_the_plugins_matter() {
    if !installed() {
        return;
    }
    World::run(&[], async |mut world| {
        configure(&mut world);
        let network = world.network();
        let mut pod = Pod::alone("one");
        pod.request.port_mappings = vec![tcp(8080, 80)];
        let result = network.add(&pod.request).await.unwrap();
        assert_eq!(result.warnings.len(), 1);
        network.del(&pod.request).await.unwrap();
    });
}
