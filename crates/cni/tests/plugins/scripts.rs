//! Plugins that write down what they are asked, fail, or hang.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use rubelet_cni::{NetworkChoice, NetworkError, NetworkRequest};
use serde_json::{Value, json};

use crate::world::{Pod, World, ip, live, tcp, veths};

/// A plugin that keeps what it is asked, and answers with one address.
const RECORDER: &str = r#"
cat > "$(dirname "$0")/../log/$$.in"
{ echo "$CNI_COMMAND"; echo "$0"; echo "$CNI_CONTAINERID"; echo "$CNI_NETNS"; echo "$CNI_IFNAME"; echo "$CNI_ARGS"; echo "$CNI_PATH"; } > "$(dirname "$0")/../log/$$.env"
echo "$CNI_COMMAND $(basename "$0")" >> "$(dirname "$0")/../log/calls"
test "$CNI_COMMAND" != ADD || echo '{"ips":[{"address":"192.0.2.7/24"}]}'
"#;

/// Installs a plugin made of shell lines.
fn plugin(world: &World, name: &str, lines: &str) {
    let dir = world.path("bin");
    fs::create_dir_all(&dir).unwrap();
    fs::create_dir_all(world.path("log")).unwrap();
    let path = dir.join(name);
    // Written elsewhere and moved: a file that is open for writing can't be executed.
    fs::write(path.with_extension("new"), format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(
        path.with_extension("new"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

fn configure(world: &mut World, version: &str, plugins: &Value) {
    world.settings.cni_bin_dirs = vec![world.path("nothing"), world.path("bin")];
    write_conf(world, "10-test.conflist", version, plugins);
}

fn write_conf(world: &World, name: &str, version: &str, plugins: &Value) {
    fs::create_dir_all(&world.settings.cni_conf_dir).unwrap();
    let list = json!({ "cniVersion": version, "name": "test-net", "plugins": plugins });
    fs::write(world.settings.cni_conf_dir.join(name), list.to_string()).unwrap();
}

fn calls(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.path("log/calls")).unwrap_or_default();
    let _ = fs::remove_file(world.path("log/calls"));
    text.lines().map(str::to_owned).collect()
}

/// Inputs of the calls so far: verb, plugin, and what it was given.
fn inputs(world: &World) -> Vec<(String, PathBuf, Vec<String>, Value)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(world.path("log")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "env") {
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let input = fs::read(path.with_extension("in")).unwrap();
            all.push((
                lines[0].clone(),
                PathBuf::from(&lines[1]),
                lines,
                serde_json::from_slice(&input).unwrap(),
            ));
        }
    }
    all
}

fn failed(result: Result<rubelet_cni::NetworkResult, NetworkError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_chain_is_run_in_order_and_back_with_all_it_is_to_know() {
    World::run(&[], async |mut world| {
        plugin(&world, "first", RECORDER);
        plugin(&world, "second", RECORDER);
        configure(
            &mut world,
            "1.1.0",
            &json!([{"type": "first"}, {"type": "second", "capabilities": {"portMappings": true}}]),
        );
        let network = world.network();
        network.status().await.unwrap();
        network.status().await.unwrap();
        assert_eq!(calls(&world), ["STATUS first", "STATUS second"]);
        network
            .set_pod_cidrs(&["10.1.0.0/24".parse().unwrap()])
            .await
            .unwrap();
        let mut pod = Pod::alone("web");
        pod.request.port_mappings = vec![tcp(8080, 80)];
        let result = network.add(&pod.request).await.unwrap();
        assert_eq!(result.ips, [ip("192.0.2.7")]);
        assert_eq!(result.warnings, Vec::<String>::new());
        network.check(&pod.request).await.unwrap();
        // The same pod once more has the same result, and no plugin is run.
        assert_eq!(network.add(&pod.request).await.unwrap(), result);
        assert_eq!(
            calls(&world),
            ["ADD first", "ADD second", "CHECK first", "CHECK second"]
        );
        let cache = world
            .settings
            .cni_cache_dir
            .join("results/test-net-web-sandbox-eth0");
        let cached: Value = serde_json::from_slice(&fs::read(&cache).unwrap()).unwrap();
        assert_eq!(cached["kind"], "cniCacheV1");
        assert_eq!(cached["containerId"], "web-sandbox");
        assert_eq!(cached["networkName"], "test-net");
        assert_eq!(cached["cniArgs"][0], json!(["IgnoreUnknown", "1"]));
        assert_eq!(cached["result"]["ips"][0]["address"], "192.0.2.7/24");

        for (verb, program, lines, input) in inputs(&world) {
            assert_eq!(input["name"], "test-net");
            assert_eq!(input["cniVersion"], "1.1.0");
            let second = program.ends_with("second");
            if verb == "STATUS" {
                continue;
            }
            assert_eq!(lines[2], "web-sandbox");
            assert_eq!(PathBuf::from(&lines[3]), pod.request.netns);
            assert_eq!(lines[4], "eth0");
            assert!(lines[5].contains("K8S_POD_NAME=web;"), "{}", lines[5]);
            assert!(lines[5].starts_with("IgnoreUnknown=1;"), "{}", lines[5]);
            assert!(lines[6].contains("/bin"), "{}", lines[6]);
            let ports = &input["runtimeConfig"]["portMappings"];
            assert_eq!(ports.is_array(), second, "{verb} {input}");
            assert_eq!(
                input["prevResult"].is_object(),
                second || verb != "ADD",
                "{verb}"
            );
        }

        network.del(&pod.request).await.unwrap();
        network.del(&pod.request).await.unwrap();
        assert_eq!(calls(&world), ["DEL second", "DEL first"]);
        assert!(!cache.exists());
    });
}

#[test]
fn a_plugins_own_message_is_reported_and_what_it_did_is_undone() {
    World::run(&[], async |mut world| {
        plugin(&world, "good", RECORDER);
        plugin(
            &world,
            "bad",
            r#"echo "$CNI_COMMAND bad" >> "$(dirname "$0")/../log/calls"
test "$CNI_COMMAND" != ADD || { echo '{"code":7,"msg":"no rack has room","details":"rack 12"}'; exit 1; }"#,
        );
        configure(
            &mut world,
            "0.4.0",
            &json!([{"type": "good"}, {"type": "bad"}]),
        );
        let network = world.network();
        network.status().await.unwrap();
        let pod = Pod::alone("web");
        let error = failed(network.add(&pod.request).await);
        for part in [
            "default/web",
            "test-net",
            "bad",
            "no rack has room",
            "rack 12",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(
            calls(&world),
            ["ADD good", "ADD bad", "DEL bad", "DEL good"]
        );
        network.del(&pod.request).await.unwrap();
        assert_eq!(calls(&world), Vec::<String>::new());

        plugin(&world, "bad", "echo 'panic: nil map' >&2; exit 3");
        let error = failed(network.add(&pod.request).await);
        assert!(error.contains("exit status 3: panic: nil map"), "{error}");
        plugin(&world, "bad", "echo hello");
        let error = failed(network.add(&pod.request).await);
        assert!(error.contains("not valid JSON"), "{error}");
    });
}

#[test]
fn a_plugin_that_is_missing_is_named_with_the_directories() {
    World::run(&[], async |mut world| {
        plugin(&world, "first", RECORDER);
        configure(
            &mut world,
            "1.0.0",
            &json!([{"type": "first"}, {"type": "absent"}]),
        );
        let network = world.network();
        let error = network.status().await.unwrap_err().to_string();
        for part in ["absent", "/bin", "/nothing"] {
            assert!(error.contains(part), "{error}");
        }
        // It comes, and the network is ready.
        plugin(&world, "absent", RECORDER);
        network.status().await.unwrap();
    });
}

#[test]
fn a_plugin_that_hangs_is_killed_with_what_it_started() {
    World::run(&[], async |mut world| {
        plugin(&world, "good", RECORDER);
        configure(
            &mut world,
            "1.0.0",
            &json!([{"type": "good"}, {"type": "stuck"}]),
        );
        world.settings.plugin_deadline = Duration::from_millis(300);
        let marker = world.path("log/pids");
        plugin(
            &world,
            "stuck",
            &format!(
                "test $CNI_COMMAND = ADD || exit 0\nsleep 1000 & echo $$ $! > {}\nwait",
                marker.display()
            ),
        );
        let network = world.network();
        let pod = Pod::alone("web");
        let error = failed(network.add(&pod.request).await);
        assert!(
            error.contains("stuck") && error.contains("killed"),
            "{error}"
        );
        for pid in fs::read_to_string(&marker).unwrap().split_whitespace() {
            let mut tries = 0;
            // Gone, or dead and not yet collected by init.
            while fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z "))
            {
                tries += 1;
                assert!(tries < 1_000_000, "{pid} lives");
                std::thread::yield_now();
            }
        }
        // A plugin that left its output to something that continues is not waited for.
        plugin(
            &world,
            "stuck",
            "test $CNI_COMMAND = ADD || exit 0\necho '{}'; sleep 1000 &\necho $! > \"$(dirname \"$0\")/../log/left\"",
        );
        world.settings.plugin_deadline = Duration::from_secs(30);
        let network = world.network();
        network.add(&pod.request).await.unwrap();
        network.del(&pod.request).await.unwrap();
        let left = fs::read_to_string(world.path("log/left")).unwrap();
        let left = process_of(&left);
        rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    });
}

/// The number of a process that the test's own plugin started.
fn process_of(text: &str) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

#[test]
fn each_pod_goes_the_way_it_came_whatever_the_configuration_is_by_then() {
    World::run(&["10.99.0.0/16"], async |mut world| {
        plugin(&world, "first", RECORDER);
        world.settings.cni_bin_dirs = vec![world.path("bin")];
        let network = world.network();
        let on_bridge = Pod::add(&network, "one").await;
        assert_eq!(veths().len(), 1);
        configure(&mut world, "1.0.0", &json!([{"type": "first"}]));
        let cni = Pod::alone("two");
        network.add(&cni.request).await.unwrap();
        assert_eq!(veths().len(), 1);
        network.check(&on_bridge.request).await.unwrap();
        fs::remove_file(world.settings.cni_conf_dir.join("10-test.conflist")).unwrap();
        let third = Pod::add(&network, "three").await;
        assert_eq!(third.ip(), ip("10.99.0.3"));

        // A new agent knows the same.
        let network = world.network();
        let gone = NetworkRequest {
            sandbox: cni.request.sandbox.clone(),
            ..NetworkRequest::default()
        };
        calls(&world);
        network.del(&gone).await.unwrap();
        assert_eq!(calls(&world), ["DEL first"]);
        network.del(&on_bridge.request).await.unwrap();
        network.del(&third.request).await.unwrap();
        crate::world::veths_become(0);
    });
}

#[test]
fn after_a_reboot_plugins_get_no_namespace() {
    World::run(&[], async |mut world| {
        plugin(&world, "first", RECORDER);
        configure(&mut world, "1.1.0", &json!([{"type": "first"}]));
        let pod = Pod::alone("web");
        let (alive, other) = (Pod::alone("alive"), Pod::alone("other"));
        let network = world.network();
        for pod in [&pod, &alive, &other] {
            network.add(&pod.request).await.unwrap();
        }
        drop(pod.netns);
        // What another runtime on this host added is not this one's to free.
        let results = world.settings.cni_cache_dir.join("results");
        fs::write(
            results.join("test-net-foreign-eth0"),
            r#"{"kind":"cniCacheV1","containerId":"foreign","ifName":"eth0","networkName":"test-net"}"#,
        )
        .unwrap();
        calls(&world);
        let network = world.network();
        network.reconcile(&live(&[&alive, &other])).await.unwrap();
        let freed = network.collect_garbage().await.unwrap();
        assert!(
            freed.iter().any(|line| line.contains("default/web")),
            "{freed:?}"
        );
        assert_eq!(calls(&world), ["DEL first", "GC first"]);
        let mut seen = 0;
        for (verb, _, lines, input) in inputs(&world) {
            match verb.as_str() {
                "DEL" => {
                    assert_eq!((lines[2].as_str(), lines[3].as_str()), ("web-sandbox", ""));
                    seen += 1;
                }
                "GC" => {
                    let valid: Vec<&str> = input["cni.dev/valid-attachments"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|one| one["containerID"].as_str().unwrap())
                        .collect();
                    assert_eq!(valid, ["alive-sandbox", "foreign", "other-sandbox"]);
                    seen += 1;
                }
                _ => {}
            }
        }
        assert_eq!(seen, 2);
    });
}

#[test]
fn adding_that_was_cut_short_begins_again() {
    World::run(&[], async |mut world| {
        plugin(&world, "first", "test $CNI_COMMAND = DEL || sleep 1000");
        configure(&mut world, "1.0.0", &json!([{"type": "first"}]));
        let network = world.network();
        let pod = Pod::alone("web");
        // The caller goes away; with it goes the plugin.
        let cut = tokio::time::timeout(Duration::from_millis(300), network.add(&pod.request)).await;
        assert!(cut.is_err());
        plugin(&world, "first", RECORDER);
        let network = world.network();
        network.add(&pod.request).await.unwrap();
        assert_eq!(calls(&world), ["DEL first", "ADD first"]);
    });
}

#[test]
fn a_pod_whose_check_fails_is_among_the_warnings_until_it_is_mended_or_gone() {
    World::run(&[], async |mut world| {
        let broken = r#"if test "$CNI_COMMAND" = CHECK; then
            echo '{"code": 100, "msg": "no rule for 192.0.2.7"}'; exit 1; fi"#;
        plugin(&world, "first", &format!("{broken}\n{RECORDER}"));
        configure(&mut world, "1.0.0", &json!([{"type": "first"}]));
        let network = world.network();
        let pod = Pod::alone("web");
        network.add(&pod.request).await.unwrap();
        assert_eq!(network.warnings().await, [""; 0]);
        network.check(&pod.request).await.unwrap_err();
        let warnings = network.warnings().await;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        for part in ["web", "no rule for 192.0.2.7", "delete the pod"] {
            assert!(warnings[0].contains(part), "{part}: {warnings:?}");
        }

        plugin(&world, "first", RECORDER);
        network.check(&pod.request).await.unwrap();
        assert_eq!(network.warnings().await, [""; 0]);
        plugin(&world, "first", &format!("{broken}\n{RECORDER}"));
        network.check(&pod.request).await.unwrap_err();
        network.del(&pod.request).await.unwrap();
        assert_eq!(network.warnings().await, [""; 0]);
    });
}

#[test]
fn ports_nobody_maps_are_warned_of() {
    World::run(&[], async |mut world| {
        plugin(&world, "first", RECORDER);
        configure(&mut world, "1.0.0", &json!([{"type": "first"}]));
        let network = world.network();
        let mut pod = Pod::alone("web");
        pod.request.port_mappings = vec![tcp(8080, 80)];
        let result = network.add(&pod.request).await.unwrap();
        assert!(
            result.warnings[0].contains("portMappings"),
            "{:?}",
            result.warnings
        );
    });
}

#[test]
fn a_configuration_that_cannot_be_used_is_reported_and_not_passed_over_silently() {
    World::run(&["10.99.0.0/16"], async |world| {
        fs::create_dir_all(&world.settings.cni_conf_dir).unwrap();
        fs::write(world.settings.cni_conf_dir.join("10-x.conflist"), "{").unwrap();
        let network = world.network();
        assert!(
            network
                .status()
                .await
                .unwrap_err()
                .to_string()
                .contains("10-x.conflist")
        );
        let pod = Pod::alone("web");
        assert!(failed(network.add(&pod.request).await).contains("10-x.conflist"));
        assert_eq!(veths(), Vec::<String>::new());
    });
}

#[test]
fn a_node_of_a_cluster_waits_for_a_configuration_and_one_with_the_bridge_ignores_it() {
    World::run(&["10.99.0.0/16"], async |mut world| {
        plugin(&world, "first", RECORDER);
        world.settings.cni_bin_dirs = vec![world.path("bin")];
        world.settings.choice = NetworkChoice::Cni;
        let network = world.network();
        let pod = Pod::alone("web");
        let why = "cni plugin not initialized";
        assert!(
            network
                .status()
                .await
                .unwrap_err()
                .to_string()
                .contains(why)
        );
        assert!(failed(network.add(&pod.request).await).contains(why));
        assert_eq!(veths(), Vec::<String>::new());

        configure(&mut world, "1.0.0", &json!([{"type": "first"}]));
        network.status().await.unwrap();
        network.add(&pod.request).await.unwrap();
        assert_eq!(veths(), Vec::<String>::new());
        network.del(&pod.request).await.unwrap();

        world.settings.choice = NetworkChoice::Bridge;
        let network = world.network();
        let pod = Pod::add(&network, "two").await;
        assert_eq!(veths().len(), 1);
        network.del(&pod.request).await.unwrap();
        crate::world::veths_become(0);
    });
}

#[test]
fn plugins_that_an_agent_left_when_it_died_are_ended() {
    use std::{os::unix::process::CommandExt, process::Command};
    World::run(&["10.99.0.0/16"], async |world| {
        let start = |agent: &str, network: &std::path::Path| {
            Command::new("sh")
                .args(["-c", "sleep 1000 & wait"])
                .env("CNI_COMMAND", "ADD")
                .env("RUBELET_NETWORK", network)
                .env("RUBELET_AGENT_PID", agent)
                .process_group(0)
                .spawn()
                .unwrap()
        };
        let own = std::process::id().to_string();
        let mut left = start("1", &world.settings.state_dir);
        let mut others = start("1", &world.path("another"));
        let mut mine = start(&own, &world.settings.state_dir);
        let network = world.network();
        let freed = network.reconcile(&std::collections::BTreeSet::new()).await;
        let ended = left.wait().unwrap();
        let mut alive = Vec::new();
        for child in [&mut others, &mut mine] {
            alive.push(child.try_wait().unwrap().is_none());
            let pid = process_of(&child.id().to_string());
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            child.wait().unwrap();
        }
        let freed = freed.unwrap();
        assert_eq!(freed.len(), 1, "{freed:?}");
        assert!(freed[0].contains(&left.id().to_string()), "{freed:?}");
        assert!(!ended.success());
        assert_eq!(alive, [true, true]);
    });
}
