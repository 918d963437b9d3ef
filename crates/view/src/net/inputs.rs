//! Input of a check of a pod's network: the facts that the node knows, and the state of the pod's
//! network namespace.

use std::{
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rubelet_api::pod::Pod;
use rubelet_base::ErrorChain;
use rubelet_host::{
    netlink::{Address, Link, NetlinkError, Route, RouteSocket},
    netns::{self, NetnsError},
};
use rubelet_netprobe::check::{
    CheckInput, CheckInputs, CheckTarget, DefaultRoute, InterfaceState, SkipReason,
};
use rubelet_node_state::{
    objects::{ObjectRefs, ObjectSource},
    pod_board::PodEntry,
};
use tokio::time::{Instant, timeout};

/// Timeout of requests to the API server and to the resolver of the node.
const ASK: Duration = Duration::from_secs(5);
/// Interfaces, addresses and routes of a pod that are looked at.
pub(super) const MOST: usize = 256;

/// The nameservers of a pod.
pub type Nameservers =
    Arc<dyn Fn(Arc<Pod>) -> Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send>> + Send + Sync>;

/// The expected network of pods.
#[derive(Clone)]
pub struct NetworkFacts {
    /// The nameservers of a pod.
    pub nameservers: Nameservers,
    /// The API server by its host and port, once it is known.
    pub api_server: Arc<OnceLock<(String, u16)>>,
    /// `clusterDomain`.
    pub cluster_domain: String,
}

/// Collects them. `namespace` is that of the pod, or `None` for the node's own.
pub(super) async fn inputs(
    facts: &NetworkFacts,
    objects: &Arc<dyn ObjectSource>,
    entry: &PodEntry,
    namespace: Option<&Arc<OwnedFd>>,
    name: Option<&str>,
    outside: Option<(&str, SocketAddr)>,
) -> Result<CheckInputs, String> {
    let state = match namespace.map(Arc::clone) {
        Some(namespace) => read(move || NamespaceState::of_pod(&namespace)).await?,
        None => read(NamespaceState::own).await?,
    };
    Ok(CheckInputs {
        addresses: super::ips(entry).collect(),
        interfaces: interfaces(&state),
        routes: default_routes(&state),
        nameservers: (facts.nameservers)(Arc::clone(&entry.pod)).await,
        name: match name {
            Some(name) => Ok(name.trim_end_matches('.').to_owned()),
            None => default_name(facts),
        },
        service: service(objects, &entry.pod).await,
        api_server: api_server(facts, namespace.is_none()).await,
        outside: match outside {
            Some((name, address)) => Ok(CheckTarget {
                name: name.to_owned(),
                address,
            }),
            None => own_gateway().await,
        },
    })
}

/// The state of a network namespace.
struct NamespaceState {
    links: Vec<Link>,
    addresses: Vec<Address>,
    routes: Vec<Route>,
}

impl NamespaceState {
    /// That of a pod, which may hold any number of things.
    fn of_pod(namespace: &OwnedFd) -> Result<Self, NetnsError> {
        // A socket stays in the namespace in which it was opened.
        let sockets = netns::within(namespace, || {
            let open = RouteSocket::open;
            Ok::<_, NetlinkError>((open()?, open()?, open()?))
        });
        let (links, addresses, routes) = sockets??;
        Ok(Self {
            links: links.first_links(MOST)?,
            addresses: addresses.first_addresses(MOST)?,
            routes: routes.first_routes(MOST)?,
        })
    }

    /// That of the node.
    fn own() -> Result<Self, NetnsError> {
        let mut socket = RouteSocket::open()?;
        Ok(Self {
            links: socket.links()?,
            addresses: socket.addresses()?,
            routes: socket.routes()?,
        })
    }
}

/// Reads from the kernel.
async fn read(
    act: impl FnOnce() -> Result<NamespaceState, NetnsError> + Send + 'static,
) -> Result<NamespaceState, String> {
    let text = |error: &(dyn std::error::Error + 'static)| {
        format!("cannot read the interfaces: {}", ErrorChain(error))
    };
    let read = tokio::task::spawn_blocking(act).await;
    read.map_err(|error| text(&error))?
        .map_err(|error| text(&error))
}

fn interfaces(state: &NamespaceState) -> Vec<InterfaceState> {
    let of_link = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let others = state.links.iter().filter(|link| link.name != "lo");
    others
        .map(|link| InterfaceState {
            name: link.name.clone(),
            up: link.up,
            mtu: link.mtu,
            addresses: state
                .addresses
                .iter()
                .filter(|address| address.link == link.index)
                .map(|address| address.address)
                .filter(|address| !of_link(address))
                .collect(),
        })
        .collect()
}

fn default_routes(state: &NamespaceState) -> Vec<DefaultRoute> {
    let defaults = state.routes.iter().filter(|route| route.prefix == 0);
    defaults
        .filter_map(|route| {
            let link = state.links.iter().find(|link| link.index == route.link)?;
            Some(DefaultRoute {
                gateway: route.gateway,
                interface: link.name.clone(),
            })
        })
        .collect()
}

fn alone() -> SkipReason {
    "this node has no API server".into()
}

/// The name that the DNS of a cluster always knows.
fn default_name(facts: &NetworkFacts) -> CheckInput<String> {
    match (facts.api_server.get(), facts.cluster_domain.as_str()) {
        (None, _) => Err("give a name with --name".into()),
        (_, "") => Err("the node has no clusterDomain; give a name with --name".into()),
        (_, domain) => Ok(format!("kubernetes.default.svc.{domain}")),
    }
}

/// The Service of the API server, as every container finds it in its environment.
async fn service(objects: &Arc<dyn ObjectSource>, pod: &Arc<Pod>) -> CheckInput<CheckTarget> {
    // One without an environment of its own: nothing else is asked for.
    let Some(mut container) = pod.spec.containers.first().cloned() else {
        return Err("the pod has no container".into());
    };
    container.env = Default::default();
    container.env_from = Default::default();
    let asked = objects.objects(pod, ObjectRefs::Environment(&container));
    let found = match timeout(ASK, asked).await {
        Err(_) => return Err("the API server does not tell its Services".into()),
        Ok(Err(error)) => return Err(error.message.into()),
        Ok(Ok(found)) => found,
    };
    let value = |name: &str| {
        let mut services = found.services.iter();
        services
            .find(|(key, _)| **key == *name)
            .map(|(_, value)| value)
    };
    let address = value("KUBERNETES_SERVICE_HOST").and_then(|host| host.parse::<IpAddr>().ok());
    let port = value("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse().ok());
    match (address, port) {
        (Some(address), Some(port)) => Ok(CheckTarget {
            name: "kubernetes.default".to_owned(),
            address: SocketAddr::new(address, port),
        }),
        _ => Err(alone()),
    }
}

async fn api_server(facts: &NetworkFacts, on_node: bool) -> CheckInput<CheckTarget> {
    let Some((host, port)) = facts.api_server.get() else {
        return Err(alone());
    };
    let found = super::look_up(host, *port, Instant::now() + ASK).await;
    let mut found = found.map_err(|error| format!("cannot resolve {host}: {error}"))?;
    let Some(address) = found.next() else {
        return Err(format!("{host} has no address").into());
    };
    if address.ip().is_loopback() && !on_node {
        return Err(format!(
            "the node reaches it at {address}, which is the pod itself from inside the pod"
        )
        .into());
    }
    Ok(CheckTarget {
        name: host.clone(),
        address,
    })
}

/// The next hop of the node's own default route.
async fn own_gateway() -> CheckInput<CheckTarget> {
    let missing = || "this node has no default route; give a host with --outside".into();
    let state = read(NamespaceState::own).await?;
    let gateways = default_routes(&state).into_iter();
    let gateway = gateways
        .filter_map(|route| route.gateway)
        // A gateway on the link needs an interface that the pod does not have.
        .find(|gateway| match gateway {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        });
    gateway
        .map(|gateway| CheckTarget {
            name: gateway.to_string(),
            address: SocketAddr::new(gateway, 0),
        })
        .ok_or_else(missing)
}
