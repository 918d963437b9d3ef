//! The interfaces of this machine that packets from a pod to a target should pass.

use std::{
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    sync::Arc,
};

use rubelet_host::{
    netlink::{Link, NetlinkError, RouteSocket},
    netns::{self, NetnsError},
    packet_programs,
    packet_tap::{Direction, PacketTap},
};
use rubelet_netprobe::path::{LastHop, PathInputs, PathPoint, tracer::Tracer};
use rubelet_node_state::pod_board::PodEntry;

use super::inputs::MOST;

/// An end of a path: a pod with its network namespace.
#[derive(Debug, Clone)]
pub(super) struct PathEnd {
    /// Its name in messages: `pod web`.
    pub(super) name: String,
    /// Its network namespace; `None` for that of the node, which pods of the host's network have.
    pub(super) namespace: Option<Arc<OwnedFd>>,
}

impl PathEnd {
    /// The end in a pod.
    pub(super) fn new(entry: &PodEntry, namespace: Option<Arc<OwnedFd>>) -> Self {
        Self {
            name: format!("pod {}", entry.pod.name.name),
            namespace,
        }
    }
}

/// Why no path can be followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PointsError {
    #[error(transparent)]
    Namespace(#[from] NetnsError),
    #[error("cannot copy the packets of {0}")]
    Tap(String, #[source] std::io::Error),
}

impl From<NetlinkError> for PointsError {
    fn from(error: NetlinkError) -> Self {
        Self::Namespace(error.into())
    }
}

/// Opens the interfaces between a source and a target; `to` is a pod of this node that has the target's
/// address. Blocks.
pub(super) fn path(
    from: &PathEnd,
    source: Option<IpAddr>,
    target: SocketAddr,
    to: Option<&PathEnd>,
) -> Result<PathInputs, PointsError> {
    let mut node = RouteSocket::open()?;
    let links = node.links()?;
    let (mut points, mut programs) = (Vec::new(), Vec::new());
    let mut of_node = |link: &Link, what: &str, requests| {
        for program in packet_programs::of_link(link) {
            // A bridge is passed twice.
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        Ok::<_, PointsError>(point(link, what, tap(link)?, requests))
    };
    // Out of the pod, and into the node. On the node itself, its own routes count at once.
    let mut routed = from.namespace.is_none();
    if let Some(namespace) = &from.namespace
        && let Some((link, gateway)) = in_pod(namespace, target.ip())?
    {
        routed = gateway.is_some();
        let own = pod_tap(namespace, &link)?;
        points.push(point(&link, &from.name, own, Direction::Out));
        if let Some(other_end) = other_end(&links, &link) {
            points.push(of_node(
                other_end,
                &format!("to {}", from.name),
                Direction::In,
            )?);
            // Frames that a bridge passes on to another port never arrive at the bridge itself.
            let bridge = links
                .iter()
                .find(|link| routed && other_end.master == Some(link.index));
            if let Some(bridge) = bridge {
                points.push(of_node(bridge, "bridge, in", Direction::In)?);
            }
        }
    }
    // Out of the node.
    let there = match to.and_then(|to| Some((to, to.namespace.as_ref()?))) {
        Some((to, namespace)) => {
            link_with(namespace, target.ip())?.map(|link| (to, namespace, link))
        }
        None => None,
    };
    let last = there
        .as_ref()
        .and_then(|(_, _, link)| other_end(&links, link));
    let hop = node.route_to(target.ip())?;
    let out = hop
        .filter(|hop| routed && !hop.local && last.is_none_or(|last| last.index != hop.link))
        .and_then(|hop| {
            let link = links.iter().find(|link| link.index == hop.link)?;
            Some((link, hop.gateway))
        });
    if let Some((link, gateway)) = out {
        let what = match (&*link.kind, gateway) {
            (_, Some(gateway)) => format!("node, next hop {gateway}"),
            ("bridge", None) => "bridge, out".to_owned(),
            (_, None) => "node".to_owned(),
        };
        points.push(of_node(link, &what, Direction::Out)?);
    }
    // Into the other pod.
    if let Some((to, namespace, link)) = &there {
        if let Some(last) = last {
            points.push(of_node(last, &format!("to {}", to.name), Direction::Out)?);
        }
        let own = pod_tap(namespace, link)?;
        points.push(point(link, &to.name, own, Direction::In));
    }
    programs.extend(packet_programs::legacy_tables());
    let tracer = source.and_then(|source| Tracer::start(source, target.ip()).ok());
    Ok(PathInputs {
        target,
        points,
        last_hop: match hop {
            _ if to.is_some() => LastHop::Target,
            Some(hop) if hop.local => LastHop::Target,
            // What is not routed is on the pods' own network.
            None if routed => LastHop::NoRoute,
            _ => LastHop::Outside,
        },
        tracer,
        programs,
    })
}

fn point(link: &Link, what: &str, tap: PacketTap, requests: Direction) -> PathPoint {
    PathPoint {
        name: format!("{} ({what})", link.name),
        tap,
        requests,
    }
}

fn tap(link: &Link) -> Result<PacketTap, PointsError> {
    PacketTap::open(link.index).map_err(|error| PointsError::Tap(link.name.clone(), error))
}

fn pod_tap(namespace: &OwnedFd, link: &Link) -> Result<PacketTap, PointsError> {
    netns::within(namespace, || tap(link))?
}

/// The interface by which a pod sends to a target, and the router.
fn in_pod(
    namespace: &OwnedFd,
    target: IpAddr,
) -> Result<Option<(Link, Option<IpAddr>)>, PointsError> {
    let hop = netns::route_socket(namespace)?.route_to(target)?;
    let Some(hop) = hop.filter(|hop| !hop.local) else {
        return Ok(None);
    };
    let links = netns::route_socket(namespace)?.first_links(MOST)?;
    let link = links.into_iter().find(|link| link.index == hop.link);
    Ok(link.map(|link| (link, hop.gateway)))
}

/// The interface of a pod that has an address.
fn link_with(namespace: &OwnedFd, address: IpAddr) -> Result<Option<Link>, PointsError> {
    let addresses = netns::route_socket(namespace)?.first_addresses(MOST)?;
    let Some(found) = addresses.iter().find(|one| one.address == address) else {
        return Ok(None);
    };
    let links = netns::route_socket(namespace)?.first_links(MOST)?;
    Ok(links.into_iter().find(|link| link.index == found.link))
}

/// The node's end of a pod's veth pair.
fn other_end<'l>(links: &'l [Link], of_pod: &Link) -> Option<&'l Link> {
    // The index could be one of a third namespace.
    links
        .iter()
        .find(|link| Some(link.index) == of_pod.peer && link.peer == Some(of_pod.index))
}

#[cfg(test)]
mod tests;
