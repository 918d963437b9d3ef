//! Sandboxes as kubelets ask for them.

use super::*;
use crate::host::tests::host;

fn config() -> v1::PodSandboxConfig {
    v1::PodSandboxConfig {
        metadata: Some(v1::PodSandboxMetadata {
            name: "web".into(),
            uid: "u1".into(),
            namespace: "default".into(),
            attempt: 0,
        }),
        hostname: "web".into(),
        dns_config: Some(v1::DnsConfig {
            servers: vec!["10.0.0.10".into(), "10.0.0.11".into()],
            searches: vec!["default.svc".into(), "svc".into()],
            options: vec!["ndots:5".into()],
        }),
        port_mappings: vec![v1::PortMapping {
            protocol: v1::Protocol::Udp.into(),
            container_port: 53,
            host_port: 1053,
            host_ip: "127.0.0.1".into(),
        }],
        linux: Some(v1::LinuxPodSandboxConfig {
            cgroup_parent: "/pods/u1".into(),
            security_context: Some(v1::LinuxSandboxSecurityContext {
                namespace_options: Some(v1::NamespaceOption {
                    pid: v1::NamespaceMode::Container.into(),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn with(change: impl FnOnce(&mut v1::PodSandboxConfig)) -> Result<SandboxPlan, Refusal> {
    let mut config = config();
    change(&mut config);
    plan(&config, &host())
}

fn options(config: &mut v1::PodSandboxConfig) -> &mut v1::NamespaceOption {
    let linux = config.linux.as_mut().unwrap();
    let security = linux.security_context.as_mut().unwrap();
    security.namespace_options.as_mut().unwrap()
}

fn sysctl(name: &str, value: &str) -> impl FnOnce(&mut v1::PodSandboxConfig) {
    let pair = (name.to_owned(), value.to_owned());
    move |config| config.linux.as_mut().unwrap().sysctls = [pair].into()
}

#[test]
fn a_pod_below_no_cgroup_or_the_root_is_refused() {
    for parent in ["/", "../../x", "relative/.."] {
        let below = with(|config| {
            config.linux.as_mut().unwrap().cgroup_parent = parent.into();
        });
        let error = below.unwrap_err().to_string();
        assert!(error.starts_with("linux.cgroup_parent: "), "{error}");
    }
}

#[test]
fn an_ordinary_pod_has_everything_of_its_own() {
    let plan = with(|_| ()).unwrap();
    assert!(plan.network && plan.ipc && plan.uts);
    assert_eq!(plan.pid, PidMode::Container);
    assert_eq!(plan.hostname.as_deref(), Some("web"));
    assert_eq!(plan.hostname_file, "web\n");
    assert_eq!(plan.shm_bytes, Some(SHM_BYTES));
    assert_eq!(plan.port_mappings.len(), 1);
    assert_eq!(
        plan.resolv_conf.as_deref(),
        Some(
            "search default.svc svc\nnameserver 10.0.0.10\nnameserver 10.0.0.11\noptions ndots:5\n"
        )
    );
    assert_eq!(plan.sysctls["net.ipv4.ip_unprivileged_port_start"], "0");
}

#[test]
fn a_pod_on_the_hosts_network_keeps_the_hosts_name_and_ports() {
    let plan = with(|config| {
        options(config).network = v1::NamespaceMode::Node.into();
        config.dns_config = None;
        config.hostname.clear();
    })
    .unwrap();
    assert!(!plan.network && !plan.uts && plan.ipc);
    assert_eq!(plan.hostname, None);
    assert_eq!(plan.hostname_file, "node\n");
    assert!(plan.port_mappings.is_empty() && plan.sysctls.is_empty());
    assert_eq!(plan.resolv_conf, None);
}

#[test]
fn only_parameters_of_the_pods_own_namespaces_are_set() {
    for name in [
        "net.ipv4.tcp_syncookies",
        "net/ipv4/conf/eth0.1/forwarding",
        "kernel.shm_rmid_forced",
        "fs.mqueue.msg_max",
    ] {
        assert!(with(sysctl(name, "1")).is_ok(), "{name}");
    }
    let plan = with(sysctl("net/ipv4/conf/eth0.1/forwarding", "1")).unwrap();
    assert_eq!(plan.sysctls["net.ipv4.conf.eth0/1.forwarding"], "1");
    for name in [
        "kernel.panic",
        "vm.swappiness",
        "net...x",
        "net.ipv4/../../kernel.panic",
        "kernel.shmmax/../panic",
        "net/../kernel/core_pattern",
        "net.//.kernel.core_pattern",
        "net/./kernel",
    ] {
        assert!(with(sysctl(name, "1")).is_err(), "{name} was taken");
    }
    assert!(
        with(|config| {
            sysctl("net.core.somaxconn", "1")(config);
            options(config).network = v1::NamespaceMode::Node.into();
        })
        .is_err()
    );
    assert!(
        with(|config| {
            sysctl("kernel.sem", "1")(config);
            options(config).ipc = v1::NamespaceMode::Node.into();
        })
        .is_err()
    );
}

#[test]
fn user_namespaces_go_with_what_the_kernel_lets_them_own() {
    let user = |config: &mut v1::PodSandboxConfig| {
        let range = vec![v1::IdMapping {
            host_id: 65536,
            container_id: 0,
            length: 65536,
        }];
        options(config).userns_options = Some(v1::UserNamespace {
            mode: v1::NamespaceMode::Pod.into(),
            uids: range.clone(),
            gids: range,
        });
    };
    let plan = with(user).unwrap();
    assert_eq!(plan.user.unwrap().uids[0].host_id, 65536);
    assert!(!plan.sysctls.contains_key("net.ipv4.ping_group_range"));
    for host_mode in [
        |options: &mut v1::NamespaceOption| options.pid = v1::NamespaceMode::Node.into(),
        |options: &mut v1::NamespaceOption| options.ipc = v1::NamespaceMode::Node.into(),
    ] {
        let refused = with(|config| {
            user(config);
            host_mode(options(config));
        });
        assert!(refused.is_err());
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_the_name_of_its_field() {
    let field = |change: fn(&mut v1::PodSandboxConfig)| with(change).unwrap_err().field;
    assert_eq!(field(|config| config.metadata = None), "metadata");
    assert_eq!(field(|config| config.hostname = "x".repeat(65)), "hostname");
    assert_eq!(
        field(|config| config.port_mappings[0].host_port = 70000),
        "port_mappings[0].host_port"
    );
    assert_eq!(
        field(|config| config.port_mappings[0].host_ip = "here".into()),
        "port_mappings[0].host_ip"
    );
    assert_eq!(
        field(|config| config.dns_config.as_mut().unwrap().servers[0] = "a\nb".into()),
        "dns_config"
    );
    assert!(
        field(|config| options(config).pid = v1::NamespaceMode::Target.into()).ends_with("pid")
    );
    assert!(field(|config| options(config).ipc = 7).ends_with("ipc"));
}
