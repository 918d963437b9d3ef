//! Users, capabilities, namespaces and ports of containers.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use rubelet_testbed::agent::free_port;
use rubelet_testbed::manifest::{WAIT, pod, shell, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::status::{container, waits_for};
use rubelet_testbed::{Node, http, images, wait};
use serde_json::{Value, json};

fn ends(name: &str, spec: &Value) -> Value {
    pod(name, &with(json!({ "restartPolicy": "Never" }), spec))
}

/// A container with a security context that runs a script.
fn secured(name: &str, context: &Value, script: &str) -> Value {
    with(shell(name, script), &json!({ "securityContext": context }))
}

/// A line of a `/proc/…/status`.
fn line<'a>(status: &'a str, key: &str) -> &'a str {
    let found = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    found.unwrap_or_default().trim()
}

#[test]
fn user_and_groups_come_from_container_pod_or_image() -> Result<()> {
    let node = Node::shared()?;
    let script = "id -u; id -g; id -G";
    let of_pod = json!({
        "runAsUser": 1000, "runAsGroup": 3000, "supplementalGroups": [4000], "fsGroup": 5000,
    });
    let own = json!({ "runAsUser": 2001, "runAsGroup": 3001 });
    let spec = json!({
        "securityContext": of_pod,
        "containers": [shell("main", script), secured("own", &own, script)],
    });
    node.apply(&ends("users", &spec))?;
    let strict = json!({ "supplementalGroupsPolicy": "Strict" });
    let spec = json!({
        "securityContext": with(of_pod, &strict),
        "containers": [shell("main", script)],
    });
    node.apply(&ends("users-strict", &spec))?;
    let of_image = |name: &str, image: &str| {
        let main = with(shell("main", script), &json!({ "image": image }));
        ends(name, &json!({ "containers": [main] }))
    };
    node.apply(&of_image("users-root", images::BUSYBOX_IMAGE))?;
    node.apply(&of_image("users-number", images::NUMERIC_USER))?;
    node.apply(&of_image("users-name", images::NAMED_USER))?;

    let check = |pod: &str, name: &str, user: u32, group: u32, groups: &[u32]| -> Result<()> {
        node.finished(pod)?;
        let log = node.log(pod, name)?;
        let mut lines = log.lines();
        assert_eq!(
            lines.next(),
            Some(user.to_string().as_str()),
            "user of {pod}: {log}"
        );
        assert_eq!(
            lines.next(),
            Some(group.to_string().as_str()),
            "group of {pod}: {log}"
        );
        let found = lines.next().unwrap_or_default().split(' ');
        let found: BTreeSet<u32> = found.filter_map(|id| id.parse().ok()).collect();
        assert_eq!(
            found,
            groups.iter().copied().collect(),
            "groups of {pod} {name}"
        );
        Ok(())
    };
    // 2000 comes from the image: its /etc/group has user 1000 as a member of that group.
    check("users", "main", 1000, 3000, &[2000, 3000, 4000, 5000])?;
    check("users", "own", 2001, 3001, &[3001, 4000, 5000])?;
    check("users-strict", "main", 1000, 3000, &[3000, 4000, 5000])?;
    check("users-root", "main", 0, 0, &[0])?;
    check("users-number", "main", 1000, 1000, &[1000, 2000])?;
    check("users-name", "main", 1000, 1000, &[1000, 2000])
}

#[test]
fn run_as_non_root_is_enforced() -> Result<()> {
    let node = Node::shared()?;
    let of = |name: &str, image: &str, context: &Value| {
        let more = json!({ "image": image, "securityContext": context });
        let spec = json!({
            "securityContext": { "runAsNonRoot": true },
            "containers": [with(waiting("main"), &more)],
        });
        pod(name, &spec)
    };
    let refused = [
        (
            of("non-root-image", images::BUSYBOX_IMAGE, &json!({})),
            "container has runAsNonRoot and image will run as root",
        ),
        (
            of("non-root-name", images::NAMED_USER, &json!({})),
            "container has runAsNonRoot and image has non-numeric user (app), cannot verify user \
             is non-root",
        ),
        (
            of(
                "non-root-zero",
                images::NUMERIC_USER,
                &json!({ "runAsUser": 0 }),
            ),
            "container's runAsUser breaks non-root policy",
        ),
    ];
    let accepted = [
        of("non-root-number", images::NUMERIC_USER, &json!({})),
        of(
            "non-root-user",
            images::NAMED_USER,
            &json!({ "runAsUser": 1000 }),
        ),
        of(
            "non-root-off",
            images::BUSYBOX_IMAGE,
            &json!({ "runAsNonRoot": false }),
        ),
    ];
    for manifest in refused
        .iter()
        .map(|(manifest, _)| manifest)
        .chain(&accepted)
    {
        node.apply(manifest)?;
    }
    for (manifest, message) in &refused {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let seen = node.wait(name, "is refused", |pod| {
            waits_for(pod, "main") == "CreateContainerConfigError"
        })?;
        let uid = seen["metadata"]["uid"].as_str().unwrap_or_default();
        let whole = format!("{message} (pod: \"{name}-testnode_default({uid})\", container: main)");
        assert_eq!(
            container(&seen, "main")["state"]["waiting"]["message"],
            whole
        );
        node.wait_event(name, "Failed", &format!("Error: {whole}"))?;
        assert_eq!(node.containers(name)?, [], "{name}: nothing was made");
        node.remove(name)?;
    }
    for manifest in &accepted {
        node.wait_ready(manifest["metadata"]["name"].as_str().unwrap_or_default())?;
    }
    Ok(())
}

#[test]
fn capabilities_follow_the_security_context() -> Result<()> {
    let node = Node::shared()?;
    let script = "exec 2>&1; cat /proc/self/status; grep ' /sys ' /proc/mounts; ls /dev | wc -l; \
                  touch /written && echo written; true";
    let contexts = [
        ("main", json!({})),
        ("none", json!({ "capabilities": { "drop": ["ALL"] } })),
        (
            "one",
            json!({ "capabilities": { "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] } }),
        ),
        (
            "less",
            json!({ "capabilities": { "drop": ["MKNOD"], "add": ["SYS_TIME"] } }),
        ),
        ("still", json!({ "allowPrivilegeEscalation": false })),
        ("guarded", json!({ "readOnlyRootFilesystem": true })),
        ("privileged", json!({ "privileged": true })),
    ];
    let containers: Vec<Value> = contexts
        .iter()
        .map(|(name, context)| secured(name, context, script))
        .collect();
    node.output(&ends("privileges", &json!({ "containers": containers })))?;
    let log = |name: &str| node.log("privileges", name);
    let effective = |name: &str| -> Result<u64> {
        let log = log(name)?;
        let text = line(&log, "CapEff");
        u64::from_str_radix(text, 16).with_context(|| format!("capabilities in {log}"))
    };
    let (net_bind, sys_time, mknod) = (1 << 10, 1 << 25, 1 << 27);
    let usual = match node.runtime().kind() {
        Kind::Containerd | Kind::Embedded => 0xa804_25fb,
        Kind::Crio => 0x5fb,
    };
    assert_eq!(
        effective("main")?,
        usual,
        "what the runtime gives by default"
    );
    assert_eq!(effective("none")?, 0);
    assert_eq!(effective("one")?, net_bind);
    assert_eq!(effective("less")?, (usual | sys_time) & !mknod);
    let runtime = node.runtime_pid()?;
    let whole = std::fs::read_to_string(format!("/proc/{runtime}/status"))?;
    let whole = u64::from_str_radix(line(&whole, "CapEff"), 16)?;
    assert_eq!(effective("privileged")?, whole, "all that the runtime has");

    for (name, escalation) in [("main", "0"), ("still", "1"), ("privileged", "0")] {
        assert_eq!(line(&log(name)?, "NoNewPrivs"), escalation, "{name}");
    }
    assert!(log("main")?.ends_with("\nwritten\n"));
    let guarded = log("guarded")?;
    assert!(
        guarded.ends_with("touch: /written: Read-only file system\n"),
        "{guarded}"
    );
    let sys = |name: &str| -> Result<String> {
        let log = log(name)?;
        let found = log.lines().find(|line| line.contains(" /sys "));
        let options = found.and_then(|line| line.split(' ').nth(3));
        Ok(options
            .unwrap_or_default()
            .split(',')
            .next()
            .unwrap_or_default()
            .to_owned())
    };
    assert_eq!(
        (sys("main")?.as_str(), sys("privileged")?.as_str()),
        ("ro", "rw")
    );
    let devices = |name: &str| -> Result<u32> {
        let log = log(name)?;
        let count = log.lines().find_map(|line| line.trim().parse().ok());
        count.context("the number of devices")
    };
    assert!(
        devices("privileged")? > devices("main")?,
        "a privileged container has the host's devices"
    );
    Ok(())
}

#[test]
fn system_calls_are_filtered_and_proc_is_masked() -> Result<()> {
    let node = Node::shared()?;
    let profiles = node.agent().root_dir().join("seccomp");
    std::fs::create_dir_all(&profiles)?;
    let profile = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1 }],
    });
    std::fs::write(profiles.join("no-mkdir.json"), profile.to_string())?;
    let script = "exec 2>&1; grep ^Seccomp: /proc/self/status; mkdir /tmp/made && echo made; true";
    let of = |profile: Value| json!({ "seccompProfile": profile });
    let local = json!({ "type": "Localhost", "localhostProfile": "no-mkdir.json" });
    let privileged = with(of(local.clone()), &json!({ "privileged": true }));
    let spec = json!({
        "securityContext": of(json!({ "type": "RuntimeDefault" })),
        "containers": [
            shell("main", script),
            secured("unconfined", &of(json!({ "type": "Unconfined" })), script),
            secured("local", &of(local), script),
            secured("privileged", &privileged, script),
        ],
    });
    node.apply(&ends("seccomp", &spec))?;
    let hidden = "exec 2>&1; wc -c < /proc/timer_list; ls /sys/firmware | wc -l; \
                  echo x > /proc/sys/kernel/hostname; grep ^Seccomp: /proc/self/status";
    let spec = json!({ "containers": [
        shell("main", &format!("{hidden}; true")),
        secured("privileged", &json!({ "privileged": true }), hidden),
    ]});
    node.apply(&ends("hidden", &spec))?;

    node.finished("seccomp")?;
    for (name, expected) in [
        ("main", "Seccomp:\t2\nmade\n"),
        ("unconfined", "Seccomp:\t0\nmade\n"),
        (
            "local",
            "Seccomp:\t2\nmkdir: can't create directory '/tmp/made': Operation not permitted\n",
        ),
        ("privileged", "Seccomp:\t0\nmade\n"),
    ] {
        assert_eq!(node.log("seccomp", name)?, expected, "{name}");
    }
    assert_eq!(
        node.finished("hidden")?,
        "0\n0\nsh: can't create /proc/sys/kernel/hostname: Read-only file system\nSeccomp:\t0\n",
        "without a profile nothing is filtered"
    );
    let open = node.log("hidden", "privileged")?;
    assert!(
        !open.starts_with("0\n"),
        "a privileged container sees it all: {open}"
    );
    assert!(!open.contains("Read-only"), "{open}");
    Ok(())
}

#[test]
fn safe_sysctls_are_set_and_unsafe_ones_are_refused() -> Result<()> {
    let node = Node::shared()?;
    let of = |name: &str, sysctls: Value| {
        let main = shell(
            "main",
            "cd /proc/sys; cat net/ipv4/ip_local_port_range kernel/shm_rmid_forced",
        );
        let security = json!({ "sysctls": sysctls });
        ends(
            name,
            &json!({ "securityContext": security, "containers": [main] }),
        )
    };
    let safe = json!([
        { "name": "net.ipv4.ip_local_port_range", "value": "20000 30000" },
        { "name": "kernel.shm_rmid_forced", "value": "1" },
    ]);
    node.apply(&of(
        "sysctl-unsafe",
        json!([{ "name": "kernel.msgmax", "value": "65536" }]),
    ))?;
    assert_eq!(node.output(&of("sysctl-safe", safe))?, "20000\t30000\n1\n");
    let message = node.wait_event("sysctl-unsafe", "SysctlForbidden", "forbidden sysctl")?;
    assert_eq!(
        message,
        "forbidden sysctl: \"kernel.msgmax\" not allowlisted"
    );
    assert_eq!(node.containers("sysctl-unsafe")?, [], "nothing was made");
    let seen = node.pod("sysctl-unsafe")?.context("the pod is shown")?;
    assert_eq!(seen["status"]["phase"], "Failed");
    assert_eq!(seen["status"]["reason"], "SysctlForbidden");
    Ok(())
}

/// The namespaces of a container, by kind.
fn namespaces(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(":["))
        .collect()
}

#[test]
fn namespaces_are_shared_as_configured() -> Result<()> {
    let node = Node::shared()?;
    // They keep running, so that the kernel does not reuse the number of a namespace.
    let script =
        format!("for kind in net pid ipc mnt; do readlink /proc/self/ns/$kind; done; {WAIT}");
    let cases = [
        ("ns-none", json!({}), &[][..]),
        ("ns-net", json!({ "hostNetwork": true }), &["net"]),
        ("ns-pid", json!({ "hostPID": true }), &["pid"]),
        ("ns-ipc", json!({ "hostIPC": true }), &["ipc"]),
        ("ns-shared", json!({ "shareProcessNamespace": true }), &[]),
    ];
    for (name, more, _) in &cases {
        let both = json!({ "containers": [shell("main", &script), shell("other", &script)] });
        node.apply(&pod(name, &with(both, more)))?;
    }
    let host: Vec<String> = ["net", "pid", "ipc", "mnt"]
        .iter()
        .map(|kind| std::fs::read_link(format!("/proc/self/ns/{kind}")))
        .map(|link| Ok(link?.display().to_string()))
        .collect::<Result<_>>()?;
    let host = host.join("\n");
    for (name, _, shared) in &cases {
        let main = node.wait_log(name, "main", "mnt:")?;
        let other = node.wait_log(name, "other", "mnt:")?;
        let with_host: Vec<&str> = namespaces(&main)
            .iter()
            .zip(namespaces(&host))
            .filter(|(own, host)| **own == *host)
            .map(|((kind, _), _)| *kind)
            .collect();
        assert_eq!(with_host, *shared, "{name}: shared with the host");
        let with_other: Vec<&str> = namespaces(&main)
            .iter()
            .zip(namespaces(&other))
            .filter(|(own, other)| **own == *other)
            .map(|((kind, _), _)| *kind)
            .collect();
        let one_pid = matches!(*name, "ns-pid" | "ns-shared");
        let expected: &[&str] = if one_pid {
            &["net", "pid", "ipc"]
        } else {
            &["net", "ipc"]
        };
        assert_eq!(
            with_other, expected,
            "{name}: shared among the pod's containers"
        );
    }
    Ok(())
}

#[test]
fn ports_are_reachable_at_the_pod_and_at_the_node() -> Result<()> {
    let node = Node::shared()?;
    let any = Ipv4Addr::UNSPECIFIED.into();
    let (mapped, open) = (free_port(any)?, free_port(any)?);
    let server = |port: u16, name: &str| {
        let script =
            format!("mkdir /www; echo {name} > /www/index.html; exec httpd -f -p {port} -h /www");
        shell("main", &script)
    };
    let ports = json!({ "ports": [{ "name": "web", "containerPort": 8080, "hostPort": mapped }] });
    let spec = json!({ "containers": [with(server(8080, "mapped"), &ports)] });
    node.apply(&pod("port-mapped", &spec))?;
    let ports = json!({ "ports": [{ "containerPort": open }] });
    let spec = json!({ "hostNetwork": true, "containers": [with(server(open, "open"), &ports)] });
    node.apply(&pod("port-open", &spec))?;

    let page = |address: &str| {
        wait::until(&format!("{address} answers"), TIMEOUT, || {
            Ok(http::get_tcp(address, "/").ok().map(|answer| answer.text()))
        })
    };
    let seen = node.wait_ready("port-mapped")?;
    let ip = seen["status"]["podIP"].as_str().unwrap_or_default();
    assert_eq!(
        page(&format!("{ip}:8080"))?,
        "mapped\n",
        "at the pod's own address"
    );
    // The node's address on the pods' network.
    let gateway = node.scratch().subnet().replace(".0/24", ".1");
    let at_node = format!("{gateway}:{mapped}");
    // CRI-O's own rules for them, which the test bed's does not make, would outlive a killed run.
    if node.runtime().kind() != Kind::Crio {
        assert_eq!(page(&at_node)?, "mapped\n", "at the node's address");
    }

    let seen = node.wait_ready("port-open")?;
    let port = &seen["spec"]["containers"][0]["ports"][0];
    assert_eq!(
        port["hostPort"], open,
        "on the host's network, the port is the host's"
    );
    assert_eq!(page(&format!("127.0.0.1:{open}"))?, "open\n");
    assert_eq!(seen["status"]["podIP"], seen["status"]["hostIP"]);

    node.remove("port-mapped")?;
    node.wait_gone("port-mapped")?;
    assert!(
        http::get_tcp(&at_node, "/").is_err(),
        "the port is free again"
    );
    Ok(())
}
