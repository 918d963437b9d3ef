//! Decides where packets stop, and why.

use rubelet_host::packet_programs::PacketProgram;

use super::tracer::DroppedBy;
use crate::check::Finding;

/// Packets seen at an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointCount {
    /// Its name, with what it is.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Replies.
    pub replies: u64,
}

/// The next hop after the last interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastHop {
    /// To the target, which is on this machine.
    #[default]
    Target,
    /// To another machine.
    Outside,
    /// Nowhere: this machine has no route to the target.
    NoRoute,
}

/// All observations of a path check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathSeen {
    /// The interfaces in the order of the requests; empty if there is none on this machine.
    pub points: Vec<PointCount>,
    /// Replies that the pod got.
    pub answers: u64,
    /// The next hop after the last interface.
    pub last_hop: LastHop,
    /// Rules and programs that dropped packets.
    pub dropped: Vec<DroppedBy>,
    /// Other packet programs on this machine, which can't be traced.
    pub programs: Vec<PacketProgram>,
    /// ICMP errors, and errors of the pod's own kernel, with their senders.
    pub errors: Vec<String>,
}

/// Returns where the packets stop.
#[must_use]
pub fn judge(seen: &PathSeen) -> Finding {
    if seen.answers > 0 {
        return Finding::ok(format!("the target answers, {} replies", seen.answers));
    }
    let (Some(first), Some(last)) = (seen.points.first(), seen.points.last()) else {
        return Finding::wrong("no reply arrives", cause(seen));
    };
    if first.requests == 0 {
        return Finding::wrong(format!("no request leaves by {}", first.name), cause(seen));
    }
    let pairs = || seen.points.windows(2);
    let stop = pairs().find(|pair| pair[0].requests > 0 && pair[1].requests == 0);
    if let Some([before, after]) = stop {
        let between = format!("requests stop between {} and {}", before.name, after.name);
        return Finding::wrong(between, cause_on_the_way(seen));
    }
    if last.replies == 0 {
        let last = &last.name;
        let detail = match seen.last_hop {
            LastHop::Target => format!("requests arrive by {last}, and the target does not answer"),
            LastHop::Outside => {
                format!("requests leave this machine by {last}, and no reply comes back")
            }
            LastHop::NoRoute => {
                format!("requests arrive by {last}, and this machine has no route to the target")
            }
        };
        let cause = match seen.last_hop {
            LastHop::Outside => cause_on_the_way(seen),
            LastHop::Target | LastHop::NoRoute => cause(seen),
        };
        return Finding::wrong(detail, cause);
    }
    let stop = pairs()
        .rev()
        .find(|pair| pair[1].replies > 0 && pair[0].replies == 0);
    match stop {
        Some([before, after]) => {
            let between = format!("replies stop between {} and {}", after.name, before.name);
            Finding::wrong(between, cause_on_the_way(seen))
        }
        _ => Finding::wrong(
            format!(
                "replies come as far as {}, and the pod does not take them",
                first.name
            ),
            cause(seen),
        ),
    }
}

/// The same for packets that vanish on this machine, where more than nftables may drop them.
fn cause_on_the_way(seen: &PathSeen) -> String {
    if !seen.dropped.is_empty() || !seen.errors.is_empty() || seen.programs.is_empty() {
        return cause(seen);
    }
    let programs: Vec<String> = seen.programs.iter().map(ToString::to_string).collect();
    format!(
        "No rule of nftables dropped them, but this machine has {}, which cannot be followed: look there",
        programs.join(", and ")
    )
}

/// Why, as far as it is known, and what to do.
fn cause(seen: &PathSeen) -> String {
    if let Some(dropped) = seen.dropped.first() {
        return dropped_by(dropped);
    }
    if seen.last_hop != LastHop::NoRoute
        && let Some(error) = seen.errors.first()
    {
        return error.clone();
    }
    let advice = match seen.last_hop {
        LastHop::Target => {
            "No rule of nftables dropped them: look at the addresses and routes of both pods, at rules inside the target, and \
             at rules of the family bridge"
        }
        LastHop::Outside => {
            "No rule of nftables on this machine dropped them: look at the next hop, and whether it knows a way back to the \
             address that the packets have when they leave; `rubelet net trace --pod` shows how far they come"
        }
        LastHop::NoRoute => {
            "Look at the routes of this machine (`ip route`), and for a pod of another node at the network that adds them"
        }
    };
    advice.to_owned()
}

fn dropped_by(dropped: &DroppedBy) -> String {
    let DroppedBy {
        chain,
        rule,
        comment,
        packets,
    } = dropped;
    let Some(place) = rule else {
        return format!(
            "The policy of the nftables chain {chain} drops them: add a rule that accepts them"
        );
    };
    let comment = comment
        .as_ref()
        .map(|comment| format!(" ({comment})"))
        .unwrap_or_default();
    let packets = packets
        .map(|packets| format!("; it has counted {packets} packets"))
        .unwrap_or_default();
    format!("Rule {place}{comment} of the nftables chain {chain} drops them{packets}")
}

#[cfg(test)]
mod tests;
