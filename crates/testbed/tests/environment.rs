//! Environment of a container: variables, arguments, names, resolver; and its termination message.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::status::{container, has_ended};
use rubelet_testbed::{Node, images, memory};
use serde_json::{Value, json};

fn node() -> Result<Arc<Node>> {
    Node::shared_with(|builder| builder.config("clusterDomain", "cluster.local"))
}

fn ends(name: &str, spec: &Value) -> Value {
    pod(name, &with(json!({ "restartPolicy": "Never" }), spec))
}

fn field(name: &str, path: &str) -> Value {
    json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } })
}

fn resource(name: &str, container: &str, resource: &str, divisor: &str) -> Value {
    json!({ "name": name, "valueFrom": { "resourceFieldRef": {
        "containerName": container, "resource": resource, "divisor": divisor,
    }}})
}

fn literal(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// The variables of a container of this pod whose names begin with `T_`.
fn variables(node: &Node, name: &str, env: &[Value], more: &Value) -> Result<Vec<String>> {
    let main = with(
        shell("main", "env | grep ^T_ | sort"),
        &json!({ "env": env }),
    );
    let bounded = with(
        shell("bounded", "true"),
        &json!({ "resources": {
            "requests": { "cpu": "250m", "memory": "32Mi" },
            "limits": { "cpu": "1500m", "memory": "64Mi" },
        }}),
    );
    let whole = ends(name, &json!({ "containers": [main, bounded] }));
    let log = node.output(&with(whole, more))?;
    Ok(log.lines().map(str::to_owned).collect())
}

#[test]
fn variables_can_reference_earlier_variables() -> Result<()> {
    let node = node()?;
    let env = [
        literal("T_A_PLAIN", "plain"),
        literal("T_B_TWICE", "first"),
        literal("T_B_TWICE", "second"),
        literal("T_C_REFERENCE", "<$(T_A_PLAIN)|$(T_B_TWICE)>"),
        literal("T_D_LATER", "$(T_E_ESCAPED)"),
        literal("T_E_ESCAPED", "$$(T_A_PLAIN) $$$(T_A_PLAIN) 5$ $$"),
        literal("T_F_UNKNOWN", "$(T_NOBODY) $T_A_PLAIN $(open"),
        literal("T_G_EMPTY", ""),
        field("T_H_FIELD", "metadata.namespace"),
        literal("T_I_OF_FIELD", "in $(T_H_FIELD)"),
    ];
    assert_eq!(
        variables(&node, "literals", &env, &json!({}))?,
        [
            "T_A_PLAIN=plain",
            "T_B_TWICE=second",
            "T_C_REFERENCE=<plain|second>",
            "T_D_LATER=$(T_E_ESCAPED)",
            "T_E_ESCAPED=$(T_A_PLAIN) $plain 5$ $",
            "T_F_UNKNOWN=$(T_NOBODY) $T_A_PLAIN $(open",
            "T_G_EMPTY=",
            "T_H_FIELD=default",
            "T_I_OF_FIELD=in default",
        ]
    );
    Ok(())
}

#[test]
fn variables_have_fields_of_pod_and_node() -> Result<()> {
    let node = node()?;
    let fields = [
        field("T_ANNOTATION", "metadata.annotations['example.com/Note']"),
        field("T_HOST_IP", "status.hostIP"),
        field("T_HOST_IPS", "status.hostIPs"),
        field("T_LABEL", "metadata.labels['app.kubernetes.io/name']"),
        field("T_NAME", "metadata.name"),
        field("T_NAMESPACE", "metadata.namespace"),
        field("T_NODE", "spec.nodeName"),
        field("T_POD_IP", "status.podIP"),
        field("T_POD_IPS", "status.podIPs"),
        field("T_SERVICE_ACCOUNT", "spec.serviceAccountName"),
        field("T_UID", "metadata.uid"),
    ];
    let more = json!({ "metadata": {
        "labels": { "app.kubernetes.io/name": "shown" },
        "annotations": { "example.com/Note": "two\twords" },
    }});
    let found = variables(&node, "fields", &fields, &more)?;
    let seen = node.pod("fields")?.context("the pod is shown")?;
    let text = |path: &str| {
        seen.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (host, ip) = (text("/status/hostIP"), text("/status/podIP"));
    let subnet = node.scratch().subnet();
    let prefix = subnet.trim_end_matches("0/24");
    assert!(ip.starts_with(prefix), "{ip} is in {subnet}");
    assert!(!host.is_empty(), "the node has an address");
    let all = |path: &str| -> String {
        let ips = seen["status"][path].as_array();
        let ips = ips
            .into_iter()
            .flatten()
            .filter_map(|one| one["ip"].as_str());
        ips.collect::<Vec<_>>().join(",")
    };
    assert_eq!(
        found,
        [
            "T_ANNOTATION=two\twords".to_owned(),
            format!("T_HOST_IP={host}"),
            format!("T_HOST_IPS={}", all("hostIPs")),
            "T_LABEL=shown".to_owned(),
            "T_NAME=fields-testnode".to_owned(),
            "T_NAMESPACE=default".to_owned(),
            "T_NODE=testnode".to_owned(),
            format!("T_POD_IP={ip}"),
            format!("T_POD_IPS={}", all("podIPs")),
            "T_SERVICE_ACCOUNT=".to_owned(),
            format!("T_UID={}", text("/metadata/uid")),
        ]
    );
    Ok(())
}

#[test]
fn variables_have_resources_in_units_of_the_divisor() -> Result<()> {
    let node = node()?;
    let env = [
        resource("T_A", "bounded", "limits.cpu", "0"),
        resource("T_B", "bounded", "limits.cpu", "1m"),
        resource("T_C", "bounded", "requests.cpu", "1"),
        resource("T_D", "bounded", "requests.cpu", "1m"),
        resource("T_E", "bounded", "limits.memory", "1"),
        resource("T_F", "bounded", "limits.memory", "1Mi"),
        resource("T_G", "bounded", "limits.memory", "1M"),
        resource("T_H", "bounded", "requests.memory", "1Ki"),
        resource("T_I", "", "limits.cpu", "1"),
        resource("T_J", "", "limits.memory", "1Ki"),
        resource("T_K", "", "requests.cpu", "1m"),
        resource("T_L", "", "requests.memory", "1"),
    ];
    let cpus = std::thread::available_parallelism()?;
    // Allocatable is all except for the eviction threshold of the tests' agents, 1 MiB.
    let allocatable = memory::total_bytes()? / 1024 - 1024;
    assert_eq!(
        variables(&node, "resources", &env, &json!({}))?,
        [
            "T_A=2".to_owned(),
            "T_B=1500".to_owned(),
            "T_C=1".to_owned(),
            "T_D=250".to_owned(),
            "T_E=67108864".to_owned(),
            "T_F=64".to_owned(),
            "T_G=68".to_owned(),
            "T_H=32768".to_owned(),
            format!("T_I={cpus}"),
            format!("T_J={allocatable}"),
            "T_K=0".to_owned(),
            "T_L=0".to_owned(),
        ],
        "without a limit, the node's allocatable counts"
    );
    Ok(())
}

#[test]
fn command_and_args_are_expanded_in_the_working_directory() -> Result<()> {
    let node = node()?;
    let main = json!({
        "name": "main",
        "image": images::BUSYBOX_IMAGE,
        "command": ["sh", "-c", "pwd; for word; do echo \"<$word>\"; done", "$(WORD)"],
        "args": ["$(WORD)", "a $(WORD) b", "$$(WORD)", "$(NOBODY)", ""],
        "workingDir": "/home/app",
        "env": [literal("WORD", "two words")],
    });
    // The image has a command, which arguments alone replace.
    let bare = json!({
        "name": "bare",
        "image": images::BUSYBOX_IMAGE,
        "args": ["echo", "no command"],
    });
    let spec = json!({ "containers": [main, bare] });
    assert_eq!(
        node.output(&ends("arguments", &spec))?,
        "/home/app\n<two words>\n<a two words b>\n<$(WORD)>\n<$(NOBODY)>\n<>\n"
    );
    assert_eq!(node.log("arguments", "bare")?, "no command\n");
    Ok(())
}

#[test]
fn names_of_the_pod_are_in_its_hosts_file() -> Result<()> {
    let node = node()?;
    let aliases = json!([
        { "ip": "192.0.2.7", "hostnames": ["db", "db.example"] },
        { "ip": "2001:db8::7", "hostnames": ["six"] },
    ]);
    let script = "hostname; cat /etc/hosts";
    let named = json!({
        "hostname": "web", "subdomain": "shop", "hostAliases": aliases,
        "containers": [shell("main", script)],
    });
    node.apply(&ends("names", &named))?;
    let plain = json!({ "containers": [shell("main", script)] });
    node.apply(&ends("plain-name", &plain))?;
    let full = json!({
        "hostname": "web", "subdomain": "shop", "setHostnameAsFQDN": true,
        "containers": [shell("main", "hostname")],
    });
    node.apply(&ends("full-name", &full))?;
    let host = json!({
        "hostNetwork": true, "hostAliases": aliases,
        "containers": [shell("main", script)],
    });
    node.apply(&ends("host-name", &host))?;

    let ip = |name: &str| -> Result<String> {
        let seen = node.pod(name)?.context("the pod is shown")?;
        Ok(seen["status"]["podIP"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    };
    let loopback = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
                    fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\n\
                    fe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
    let added = "\n# Entries added by HostAliases.\n192.0.2.7\tdb\tdb.example\n2001:db8::7\tsix\n";
    assert_eq!(
        node.finished("names")?,
        format!(
            "web\n# Kubernetes-managed hosts file.\n{loopback}\
             {}\tweb.shop.default.svc.cluster.local\tweb\n{added}",
            ip("names")?
        )
    );
    assert_eq!(
        node.finished("plain-name")?,
        format!(
            "plain-name-testnode\n# Kubernetes-managed hosts file.\n{loopback}\
             {}\tplain-name-testnode\n",
            ip("plain-name")?
        )
    );
    assert_eq!(
        node.finished("full-name")?,
        "web.shop.default.svc.cluster.local\n"
    );
    let of_host = std::fs::read_to_string("/etc/hosts")?;
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    assert_eq!(
        node.finished("host-name")?,
        format!("{hostname}# Kubernetes-managed hosts file (host network).\n{of_host}{added}")
    );
    Ok(())
}

/// The node's own resolver settings in the test of those.
const RESOLV_CONF: &str = "nameserver 192.0.2.1\nnameserver 192.0.2.2\n\
                           search corp.example lab.example\noptions timeout:2\n";

/// An agent with a cluster DNS, on a node with its own resolver settings.
fn with_cluster_dns(builder: AgentBuilder) -> AgentBuilder {
    let path = builder.scratch().dir().join("resolv.conf");
    std::fs::write(&path, RESOLV_CONF).expect("the instance's directory takes files");
    builder
        .config("resolvConf", path.display().to_string())
        .config("clusterDomain", "cluster.local")
        .config("clusterDNS", json!(["192.0.2.10"]))
}

/// Name servers, search domains and options of a resolv.conf.
fn resolver(text: &str) -> [String; 3] {
    ["nameserver", "search", "options"].map(|keyword| {
        let values = text.lines().filter_map(|line| line.strip_prefix(keyword));
        values.map(str::trim).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn resolv_conf_follows_dns_policy_and_dns_config() -> Result<()> {
    let node = Node::start_with(with_cluster_dns)?;
    let host = [
        "192.0.2.1 192.0.2.2",
        "corp.example lab.example",
        "timeout:2",
    ];
    let cluster = "default.svc.cluster.local svc.cluster.local cluster.local";
    let of_cluster = format!("{cluster} corp.example lab.example");
    let own = json!({
        "nameservers": ["192.0.2.20"],
        "searches": ["own.example"],
        "options": [{ "name": "ndots", "value": "2" }, { "name": "edns0" }],
    });
    let cases = [
        (
            "dns-default",
            json!({ "dnsPolicy": "Default" }),
            host.map(str::to_owned),
        ),
        (
            "dns-cluster",
            json!({ "dnsPolicy": "ClusterFirst" }),
            ["192.0.2.10".into(), of_cluster.clone(), "ndots:5".into()],
        ),
        (
            "dns-more",
            json!({ "dnsPolicy": "ClusterFirst", "dnsConfig": own }),
            [
                "192.0.2.10 192.0.2.20".into(),
                format!("{of_cluster} own.example"),
                "ndots:2 edns0".into(),
            ],
        ),
        (
            "dns-none",
            json!({ "dnsPolicy": "None", "dnsConfig": own }),
            [
                "192.0.2.20".into(),
                "own.example".into(),
                "ndots:2 edns0".into(),
            ],
        ),
        (
            "dns-host",
            json!({ "dnsPolicy": "ClusterFirst", "hostNetwork": true }),
            host.map(str::to_owned),
        ),
        (
            "dns-both",
            json!({ "dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true }),
            ["192.0.2.10".into(), of_cluster, "ndots:5".into()],
        ),
        (
            "dns-limit",
            json!({ "dnsPolicy": "Default", "dnsConfig": {
                "nameservers": ["192.0.2.21", "192.0.2.22"],
            }}),
            [
                "192.0.2.1 192.0.2.2 192.0.2.21".into(),
                "corp.example lab.example".into(),
                "timeout:2".into(),
            ],
        ),
    ];
    for (name, spec, _) in &cases {
        let main = json!({ "containers": [shell("main", "cat /etc/resolv.conf")] });
        node.apply(&ends(name, &with(main, spec)))?;
    }
    for (name, _, expected) in &cases {
        assert_eq!(&resolver(&node.finished(name)?), expected, "{name}");
    }
    node.wait_event(
        "dns-limit",
        "DNSConfigForming",
        "192.0.2.1 192.0.2.2 192.0.2.21",
    )?;
    Ok(())
}

#[test]
fn cluster_first_falls_back_to_the_nodes_dns() -> Result<()> {
    let node = node()?;
    let main = json!({
        "dnsPolicy": "ClusterFirst",
        "containers": [shell("main", "cat /etc/resolv.conf")],
    });
    let log = node.output(&ends("dns-missing", &main))?;
    let host = std::fs::read_to_string("/etc/resolv.conf")?;
    assert_eq!(resolver(&log), resolver(&host));
    let warned: Vec<_> = node
        .events("dns-missing")?
        .into_iter()
        .filter(|[kind, ..]| kind == "Warning")
        .collect();
    assert_eq!(warned, Vec::<[String; 3]>::new(), "that is as it should be");
    Ok(())
}

/// The termination message of the container, in the status.
fn said(pod: &Value, name: &str) -> String {
    let end = &container(pod, name)["state"]["terminated"];
    end["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn termination_messages_come_from_file_or_log() -> Result<()> {
    let node = node()?;
    let fallback = json!({ "terminationMessagePolicy": "FallbackToLogsOnError" });
    let custom = json!({
        "terminationMessagePath": "/run/farewell",
        "securityContext": { "runAsUser": 1000 },
    });
    let fill = "seq -w 1 1000 | while read n; do echo line $n; done";
    let cases = [
        (
            "file",
            "echo all is well > /dev/termination-log",
            json!({}),
            "all is well\n".to_owned(),
        ),
        (
            "custom",
            "echo as a user > /run/farewell; exit 3",
            custom,
            "as a user\n".into(),
        ),
        (
            "silent",
            "echo only in the log; exit 3",
            json!({}),
            String::new(),
        ),
        (
            "log",
            "echo last words; exit 3",
            fallback.clone(),
            "last words\n".into(),
        ),
        (
            "good-end",
            "echo last words",
            fallback.clone(),
            String::new(),
        ),
        (
            "both",
            "echo in the log; echo in the file > /dev/termination-log; exit 3",
            fallback.clone(),
            "in the file\n".into(),
        ),
    ];
    for (name, script, more, _) in &cases {
        let main = with(shell("main", script), more);
        node.apply(&ends(
            &format!("says-{name}"),
            &json!({ "containers": [main] }),
        ))?;
    }
    let long = shell("main", &format!("{fill} > /dev/termination-log"));
    node.apply(&ends("says-much", &json!({ "containers": [long] })))?;
    let long = with(shell("main", &format!("{fill}; exit 3")), &fallback);
    node.apply(&ends("logs-much", &json!({ "containers": [long] })))?;
    let four =
        ["a", "b", "c", "d"].map(|name| shell(name, &format!("{fill} > /dev/termination-log")));
    node.apply(&ends("four-say-much", &json!({ "containers": four })))?;

    for (name, _, _, message) in &cases {
        let seen = node.wait_end(&format!("says-{name}"))?;
        assert_eq!(&said(&seen, "main"), message, "{name}");
    }
    // 1000 lines of 10 bytes were written; the end of a long message is kept.
    let much = said(&node.wait_end("says-much")?, "main");
    assert_eq!(much.len(), 4096);
    assert!(much.ends_with("line 0999\nline 1000\n"), "{much}");
    let much = said(&node.wait_end("logs-much")?, "main");
    assert_eq!(
        much.lines().count(),
        80,
        "of a log, so many lines are kept: {much}"
    );
    assert!(much.ends_with("line 0999\nline 1000\n"), "{much}");
    let four = node.wait("four-say-much", "has ended", has_ended)?;
    for name in ["a", "b", "c", "d"] {
        let length = said(&four, name).len();
        assert_eq!(
            length,
            12 * 1024 / 4,
            "all of a pod together may say 12 KiB"
        );
    }
    assert!(
        Path::new("/dev/termination-log")
            .symlink_metadata()
            .is_err()
    );
    Ok(())
}
