//! The pods' network.

use std::net::Ipv4Addr;

use anyhow::Result;
use rubelet_cri::v1;
use rubelet_testbed::{agent::free_port, cleanup::network::links_of, http, wait};

use crate::subject::{Subject, TIMEOUT};

const SERVER: &str = "echo hello > /tmp/index.html; exec httpd -f -h /tmp -p 8080";

fn page(address: &str) -> Result<String> {
    wait::until(&format!("{address} answers"), TIMEOUT, || {
        Ok(http::get_tcp(address, "/")
            .ok()
            .map(|response| response.text()))
    })
}

#[test]
fn a_pod_is_reached_from_the_host_from_another_pod_and_by_itself() -> Result<()> {
    let subject = Subject::shared()?;
    let (server, client) = (subject.sandbox("server")?, subject.sandbox("client")?);
    server.start(server.script("httpd", SERVER))?;
    let ip = server.ip()?;
    assert_eq!(page(&format!("{ip}:8080"))?, "hello\n");
    let get = format!("wget -q -O - http://{ip}:8080/");
    assert_eq!(client.output("get", &get)?, "hello\n");
    assert_eq!(server.output("own", &get)?, "hello\n");
    let local = "wget -q -O - http://127.0.0.1:8080/";
    assert_eq!(server.output("local", local)?, "hello\n", "loopback is up");
    Ok(())
}

#[test]
fn a_host_port_reaches_the_pod_until_it_is_stopped() -> Result<()> {
    let subject = Subject::shared()?;
    let port = free_port(Ipv4Addr::LOCALHOST.into())?;
    let mut config = subject.sandbox_config("mapped")?;
    config.port_mappings = vec![v1::PortMapping {
        protocol: v1::Protocol::Tcp.into(),
        container_port: 8080,
        host_port: port.into(),
        host_ip: String::new(),
    }];
    let sandbox = subject.sandbox_of(config)?;
    sandbox.start(sandbox.script("httpd", SERVER))?;
    let gateway = subject.runtime.scratch().subnet().replace(".0/24", ".1");
    let address = format!("{gateway}:{port}");
    assert_eq!(page(&address)?, "hello\n");
    let other = subject.sandbox("other")?;
    let get = format!("wget -q -O - http://{address}/");
    assert_eq!(other.output("get", &get)?, "hello\n", "from another pod");
    assert_eq!(
        sandbox.output("hairpin", &get)?,
        "hello\n",
        "from the pod itself"
    );
    if subject.is_embedded() {
        assert_eq!(
            page(&format!("127.0.0.1:{port}"))?,
            "hello\n",
            "on the host's loopback"
        );
    }
    drop(sandbox);
    assert!(
        http::get_tcp(&address, "/").is_err(),
        "the port is free again"
    );
    Ok(())
}

#[test]
fn a_host_network_pod_has_no_ip_of_its_own() -> Result<()> {
    let subject = Subject::shared()?;
    let options = v1::NamespaceOption {
        network: v1::NamespaceMode::Node.into(),
        ..Default::default()
    };
    let mut config = subject.sandbox_config("hostnet")?;
    config.hostname = String::new();
    config.linux.get_or_insert_default().security_context = Some(v1::LinuxSandboxSecurityContext {
        namespace_options: Some(options.clone()),
        ..Default::default()
    });
    let sandbox = subject.sandbox_of(config)?;
    assert_eq!(sandbox.ip()?, "");
    let mut config = sandbox.script("main", "ls /sys/class/net | tr '\\n' ' '");
    config.linux.get_or_insert_default().security_context =
        Some(v1::LinuxContainerSecurityContext {
            namespace_options: Some(options),
            ..Default::default()
        });
    let seen = sandbox.output_of(config)?;
    assert!(seen.contains(" lo ") || seen.starts_with("lo "), "{seen}");
    Ok(())
}

#[test]
fn addresses_are_released_with_their_pods() -> Result<()> {
    let subject = Subject::alone()?;
    let mut seen = std::collections::BTreeSet::new();
    // Running more pods than the subnet has addresses would be too slow; the remaining leases show
    // that no address is lost.
    for _ in 0..10 {
        let sandbox = subject.sandbox("short")?;
        seen.insert(sandbox.ip()?);
    }
    assert!(!seen.contains(""));
    let scratch = subject.runtime.scratch();
    // The kernel may remove an interface a moment after its pod is gone.
    wait::until("no pod's interface is left", TIMEOUT, || {
        let left = links_of(scratch);
        Ok(left
            .iter()
            .all(|link| *link == scratch.bridge())
            .then_some(()))
    })
}
