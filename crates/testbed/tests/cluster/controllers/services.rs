//! Traffic to Services with kube-proxy's rules and those of the pods' bridge. The rules apply to a
//! whole network namespace, so the test runs in its own.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rubelet_testbed::api_server;
use rubelet_testbed::command::{output_of, stdout_of};
use rubelet_testbed::wait::until;
use serde_json::{Value, json};

use super::{all_ready, applies, apply, wait_long, wait_pods, workload};
use crate::joined::{Joined, pod, wait_stdout};

/// Environment variable of the process that runs in its own network namespace.
const INSIDE: &str = "RUBELET_TEST_OWN_NETWORK";
const NAME: &str = "controllers::services::a_service_reaches_its_pods_from_pods_and_node";
/// Prints the names of the responding pods for a number of requests, and waits for each response.
const ASK: &str = "n=0; while [ $n -lt 20 ]; do \
                   who=$(printf 'GET /who HTTP/1.0\\r\\n\\r\\n' | nc -w 2 $TARGET 2>/dev/null | tail -n 1); \
                   [ -n \"$who\" ] && echo \"$who\" && n=$((n + 1)) || sleep 0.2; done";

/// kube-proxy; killed when the value is dropped.
struct Proxy(Child);

impl Proxy {
    fn start(joined: &Joined, program: &std::path::Path) -> Self {
        let kubeconfig = joined.cluster.admin_kubeconfig();
        let log = File::create(joined.cluster.path("kube-proxy.log")).unwrap();
        let child = Command::new(program)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--proxy-mode=nftables", "--hostname-override=worker"])
            // Settings outside of the namespace are not changed.
            .args(["--conntrack-max-per-core=0", "--conntrack-min=0"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sets up the new namespace like a node: a non-loopback address, and a default route.
fn set_up_network() {
    for words in [
        "link set lo up",
        "link add rbt-uplink type veth peer name rbt-beyond",
        "link set rbt-beyond up",
        // An address for tests of networks (RFC 2544).
        "address add 198.18.0.2/24 dev rbt-uplink",
        "link set rbt-uplink up",
        "route add default via 198.18.0.1",
    ] {
        stdout_of(Command::new("ip").args(words.split(' '))).unwrap();
    }
    // As kubeadm requires on each node: responses between pods of one bridge are translated back.
    std::fs::write("/proc/sys/net/bridge/bridge-nf-call-iptables", "1").unwrap();
}

/// Waits until kube-proxy sends requests of the node to exactly these pods: it learns a moment later
/// than the API server which pods are ready.
fn wait_proxied(target: &str, names: &[&str]) {
    let what = format!("kube-proxy sends what is for {target} to {names:?}");
    let waited = until(&what, Duration::from_secs(60), || {
        Ok((of_node(target)? == names).then_some(()))
    });
    waited.unwrap();
}

/// The responses to 20 requests of the node itself.
fn of_node(target: &str) -> anyhow::Result<Vec<String>> {
    let script = format!("TARGET='{target}'; {ASK}");
    let who = stdout_of(Command::new("busybox").args(["sh", "-c", &script]))?;
    let mut who: Vec<String> = who.lines().map(str::to_owned).collect();
    who.sort();
    who.dedup();
    Ok(who)
}

/// The responses to 20 requests of a pod.
fn answers(joined: &Joined, name: &str, target: &str) -> Vec<String> {
    let mut asks = pod(name, &format!("TARGET='{target}'; {ASK}"));
    asks["spec"]["restartPolicy"] = "Never".into();
    joined.create(&asks);
    wait_long(joined, &format!("pod/{name}"), |pod| {
        pod["status"]["phase"] == "Succeeded"
    });
    let mut who: Vec<String> = joined
        .kubectl
        .stdout(&["logs", name])
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(who.len(), 20, "{who:?}");
    who.sort();
    who.dedup();
    who
}

#[test]
fn a_service_reaches_its_pods_from_pods_and_node() {
    if !applies() {
        return;
    }
    let programs = api_server::real_programs().unwrap().unwrap();
    let proxy = programs.dir().join("kube-proxy");
    if !rubelet_needs::applies(proxy.is_file(), "the directory has no kube-proxy") {
        return;
    }
    if std::env::var_os(INSIDE).is_none() {
        let mut command = Command::new("unshare");
        command
            .args(["--net", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(INSIDE, "1");
        let output = output_of(&mut command).unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    }
    set_up_network();
    let joined = Joined::start("worker");
    let _proxy = Proxy::start(&joined, &proxy);

    let script = "mkdir /www; hostname > /www/who; exec httpd -f -p 8080 -h /www";
    let mut web = workload("Deployment", "web", &json!({ "replicas": 2 }));
    web["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["sh", "-c", script]);
    apply(&joined, &web);
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "web" },
        "spec": {
            "type": "NodePort",
            "selector": { "app": "web" },
            "ports": [{ "port": 80, "targetPort": 8080 }],
        },
    });
    apply(&joined, &service);
    let pods = wait_pods(&joined, "web", "both run", |pods| all_ready(pods, 2));
    let mut names: Vec<&str> = pods
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str())
        .collect();
    names.sort_unstable();
    let service = wait_long(&joined, "service/web", |service: &Value| {
        service["spec"]["ports"][0]["nodePort"].is_u64()
    });
    let address = service["spec"]["clusterIP"].as_str().unwrap();
    let node_port = &service["spec"]["ports"][0]["nodePort"];

    let by_address = format!("{address} 80");
    // The node itself sends the first requests, like probes and programs on it.
    wait_proxied(&by_address, &names);
    assert_eq!(answers(&joined, "by-address", &by_address), names);
    let by_port = format!("{} {node_port}", joined.cluster.node_ip());
    assert_eq!(answers(&joined, "by-node-port", &by_port), names);
    assert_eq!(of_node(&by_port).unwrap(), names);
    // With one pod left, its own requests to the service come back to it.
    joined
        .kubectl
        .stdout(&["scale", "deployment/web", "--replicas=1"]);
    let left = wait_pods(&joined, "web", "one is left", |pods| all_ready(pods, 1));
    let name = left[0]["metadata"]["name"].as_str().unwrap();
    wait_proxied(&by_address, &[name]);
    assert_eq!(answers(&joined, "after", &by_address), [name]);
    let mut itself = pod(
        "itself",
        &format!("{{ {script}; }} & TARGET='10.96.0.81 81'; {ASK}; wait"),
    );
    itself["spec"]["restartPolicy"] = "Never".into();
    joined.create(&itself);
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "itself" },
        "spec": {
            "clusterIP": "10.96.0.81",
            "selector": { "app": "itself" },
            "ports": [{ "port": 81, "targetPort": 8080 }],
        },
    });
    apply(&joined, &service);
    let log = wait_stdout(&joined.kubectl, &["logs", "itself"], |log| {
        log.lines().count() == 20
    });
    assert!(log.lines().all(|line| line == "itself"), "{log}");
    joined.cluster.no_violations().unwrap();
}
