//! Routes.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{
    Changes, NetlinkError, RouteSocket,
    address::{bytes, from_bytes},
    message::{self, Messages},
    socket::{ENSURE, REQUEST},
};

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;

/// A route of the main table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Its destination; the unspecified address for a default route.
    pub destination: IpAddr,
    /// Prefix length.
    pub prefix: u8,
    /// The next hop.
    pub gateway: Option<IpAddr>,
    /// The interface's index.
    pub link: u32,
    /// The preferred source address.
    pub source: Option<IpAddr>,
}

impl Route {
    /// The default route with a gateway.
    #[must_use]
    pub fn default_by(gateway: IpAddr, link: u32) -> Self {
        Self {
            destination: match gateway {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            },
            prefix: 0,
            gateway: Some(gateway),
            link,
            source: None,
        }
    }
}

/// The route of packets to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// The interface's index.
    pub link: u32,
    /// The router; `None` if the address is on the link, or one of this host.
    pub gateway: Option<IpAddr>,
    /// Whether the address is one of this host.
    pub local: bool,
}

/// The kernel's error if there is no route, or one of the types unreachable, prohibit and
/// blackhole.
fn leads_nowhere(errno: i32) -> bool {
    matches!(
        errno,
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL
    )
}

fn next_hop(item: &[u8]) -> Option<NextHop> {
    let kind = *item.get(7)?;
    if ![RTN_UNICAST, RTN_LOCAL].contains(&kind) {
        return None;
    }
    let rest = item.get(12..)?;
    Some(NextHop {
        link: message::attribute(rest, RTA_OIF).and_then(|value| message::number(value, 0))?,
        gateway: message::attribute(rest, RTA_GATEWAY).and_then(from_bytes),
        local: kind == RTN_LOCAL,
    })
}

impl RouteSocket {
    /// The unicast routes of the main table, of both families.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn routes(&mut self) -> Result<Vec<Route>, NetlinkError> {
        // There may be very many, and each may be reported twice.
        let mut known = BTreeSet::new();
        let mut routes = Vec::new();
        self.socket
            .dump(libc::RTM_GETROUTE, &[0; 12], "list the routes", |item| {
                let route = parse(item);
                routes.extend(route.filter(|route| known.insert(*route)));
            })?;
        Ok(routes)
    }

    /// The route of this host's packets to an address, by all tables and rules; `None` if there is
    /// none.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn route_to(&mut self, address: IpAddr) -> Result<Option<NextHop>, NetlinkError> {
        let (family, bytes) = bytes(address);
        let length = if family == 2 { 32 } else { 128 };
        let mut request = Messages::default();
        let header = [family, length, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        request
            .begin(libc::RTM_GETROUTE, REQUEST, &header)
            .attribute(RTA_DST, &bytes);
        let found = self.socket.get(&request, "look for a route", next_hop);
        match found {
            Err(error) if error.errno().is_some_and(leads_nowhere) => Ok(None),
            found => found,
        }
    }

    /// The first unicast routes of the main table, among the first `most` of all tables: a pod can add
    /// any number of them.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn first_routes(self, most: usize) -> Result<Vec<Route>, NetlinkError> {
        let what = "list the routes";
        let items = self
            .socket
            .dump_beginning(libc::RTM_GETROUTE, &[0; 12], most, what)?;
        Ok(items.iter().filter_map(|item| parse(item)).collect())
    }
}

impl Changes {
    /// Adds a route, or replaces the one to the same destination.
    pub fn add_route(&mut self, route: Route) -> &mut Self {
        let (family, destination) = bytes(route.destination);
        let scope = match route.gateway {
            None if family == 2 => RT_SCOPE_LINK,
            _ => RT_SCOPE_UNIVERSE,
        };
        let header = [
            family,
            route.prefix,
            0,
            0,
            RT_TABLE_MAIN,
            RTPROT_BOOT,
            scope,
            RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        let messages = self.messages.begin(libc::RTM_NEWROUTE, ENSURE, &header);
        if route.prefix > 0 {
            messages.attribute(RTA_DST, &destination);
        }
        if let Some(gateway) = route.gateway {
            messages.attribute(RTA_GATEWAY, &bytes(gateway).1);
        }
        if let Some(source) = route.source {
            messages.attribute(RTA_PREFSRC, &bytes(source).1);
        }
        messages.number(RTA_OIF, route.link);
        self
    }
}

fn parse(item: &[u8]) -> Option<Route> {
    let (&family, &prefix) = (item.first()?, item.get(1)?);
    // Local, broadcast and cached routes do not show where a range leads.
    if *item.get(4)? != RT_TABLE_MAIN || *item.get(7)? != RTN_UNICAST {
        return None;
    }
    let rest = item.get(12..)?;
    let address = |kind| message::attribute(rest, kind).and_then(from_bytes);
    let unspecified = match family {
        2 => Ipv4Addr::UNSPECIFIED.into(),
        10 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    Some(Route {
        destination: address(RTA_DST).unwrap_or(unspecified),
        prefix,
        gateway: address(RTA_GATEWAY),
        link: message::attribute(rest, RTA_OIF)
            .and_then(|value| message::number(value, 0))
            .unwrap_or(0),
        source: address(RTA_PREFSRC),
    })
}
