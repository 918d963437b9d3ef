//! ICMP errors: what they mean to a probe, and the words and marks that ping and traceroute have for
//! them.

use serde::{Deserialize, Serialize};

use crate::packet::Family;

/// An ICMP error, by type and code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IcmpError {
    /// Whose numbers these are.
    pub family: Family,
    /// The type.
    #[serde(rename = "type")]
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// The MTU of the next link, if the packet was too long for it and the router says so; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mtu: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(mtu: &u32) -> bool {
    *mtu == 0
}

/// The meaning of an ICMP error for a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpMeaning {
    /// A router on the way: the TTL is used up.
    TimeExceeded,
    /// The destination itself: nothing listens on that port.
    PortUnreachable,
    /// The packet is longer than the MTU of a link and must not be fragmented.
    TooBig,
    /// The packet can't reach its destination.
    Unreachable,
    /// Another error, which says nothing about the way.
    Other,
}

impl IcmpError {
    /// Its meaning.
    #[must_use]
    pub fn meaning(self) -> IcmpMeaning {
        match (self.family, self.kind, self.code) {
            (Family::V4, 11, 0) | (Family::V6, 3, 0) => IcmpMeaning::TimeExceeded,
            (Family::V4, 3, 3) | (Family::V6, 1, 4) => IcmpMeaning::PortUnreachable,
            (Family::V4, 3, 4) | (Family::V6, 2, _) => IcmpMeaning::TooBig,
            (Family::V4, 3, _) | (Family::V6, 1, _) => IcmpMeaning::Unreachable,
            _ => IcmpMeaning::Other,
        }
    }

    /// The words of ping.
    #[must_use]
    pub fn text(self) -> String {
        let Self { code, mtu, .. } = self;
        match (self.family, self.kind) {
            (Family::V4, 3) => match UNREACHABLE_V4.get(usize::from(code)) {
                Some(text) if code == 4 => format!("{text} (mtu = {mtu})"),
                Some(text) => (*text).to_owned(),
                None => format!("Dest Unreachable, Bad Code: {code}"),
            },
            (Family::V4, 4) => "Source Quench".to_owned(),
            (Family::V4, 5) => "Redirect".to_owned(),
            (Family::V4, 11) if code == 0 => "Time to live exceeded".to_owned(),
            (Family::V4, 11) if code == 1 => "Frag reassembly time exceeded".to_owned(),
            (Family::V4, 11) => format!("Time exceeded, Bad Code: {code}"),
            (Family::V4, 12) => "Parameter problem".to_owned(),
            (Family::V6, 1) => match UNREACHABLE_V6.get(usize::from(code)) {
                Some(text) => format!("Destination unreachable: {text}"),
                None => format!("Destination unreachable: Unknown code {code}"),
            },
            (Family::V6, 2) => format!("Packet too big: mtu={mtu}"),
            (Family::V6, 3) if code == 0 => "Time exceeded: Hop limit".to_owned(),
            (Family::V6, 3) => "Time exceeded: Defragmentation failure".to_owned(),
            (Family::V6, 4) => "Parameter problem".to_owned(),
            (_, kind) => format!("Bad ICMP type: {kind}"),
        }
    }

    /// The mark of traceroute behind a time; empty for a hop on the way and for the destination.
    #[must_use]
    pub fn mark(self) -> String {
        match (self.meaning(), self.family, self.code) {
            (IcmpMeaning::TimeExceeded | IcmpMeaning::PortUnreachable, ..) => String::new(),
            (IcmpMeaning::TooBig, ..) => format!("!F-{}", self.mtu),
            (IcmpMeaning::Unreachable, Family::V4, 0 | 6 | 11) => "!N".to_owned(),
            (IcmpMeaning::Unreachable, Family::V4, 1 | 7 | 8 | 12) => "!H".to_owned(),
            (IcmpMeaning::Unreachable, Family::V4, 2) => "!P".to_owned(),
            (IcmpMeaning::Unreachable, Family::V4, 5) => "!S".to_owned(),
            (IcmpMeaning::Unreachable, Family::V4, 9 | 10 | 13) => "!X".to_owned(),
            (IcmpMeaning::Unreachable, Family::V4, 14) => "!V".to_owned(),
            (IcmpMeaning::Unreachable, Family::V4, 15) => "!C".to_owned(),
            (IcmpMeaning::Unreachable, Family::V6, 0) => "!N".to_owned(),
            (IcmpMeaning::Unreachable, Family::V6, 1 | 5 | 6) => "!X".to_owned(),
            (IcmpMeaning::Unreachable, Family::V6, 2) => "!S".to_owned(),
            (IcmpMeaning::Unreachable, Family::V6, 3) => "!H".to_owned(),
            (IcmpMeaning::Unreachable, _, code) => format!("!{code}"),
            (IcmpMeaning::Other, ..) => format!("!<{}-{}>", self.kind, self.code),
        }
    }
}

/// Codes of ICMP type 3.
const UNREACHABLE_V4: [&str; 16] = [
    "Destination Net Unreachable",
    "Destination Host Unreachable",
    "Destination Protocol Unreachable",
    "Destination Port Unreachable",
    "Frag needed and DF set",
    "Source Route Failed",
    "Destination Net Unknown",
    "Destination Host Unknown",
    "Source Host Isolated",
    "Destination Net Prohibited",
    "Destination Host Prohibited",
    "Destination Net Unreachable for Type of Service",
    "Destination Host Unreachable for Type of Service",
    "Packet filtered",
    "Precedence Violation",
    "Precedence Cutoff",
];

/// Codes of ICMPv6 type 1.
const UNREACHABLE_V6: [&str; 7] = [
    "No route",
    "Administratively prohibited",
    "Beyond scope of source address",
    "Address unreachable",
    "Port unreachable",
    "Source address failed ingress/egress policy",
    "Reject route to destination",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_words_and_marks_of_ping_and_traceroute() {
        use Family::{V4, V6};
        use IcmpMeaning::{Other, PortUnreachable, TimeExceeded, TooBig, Unreachable};
        for (family, kind, code, meaning, text, mark) in [
            (V4, 11, 0, TimeExceeded, "Time to live exceeded", ""),
            (
                V4,
                3,
                3,
                PortUnreachable,
                "Destination Port Unreachable",
                "",
            ),
            (V4, 3, 1, Unreachable, "Destination Host Unreachable", "!H"),
            (V4, 3, 0, Unreachable, "Destination Net Unreachable", "!N"),
            (V4, 3, 13, Unreachable, "Packet filtered", "!X"),
            (
                V4,
                3,
                4,
                TooBig,
                "Frag needed and DF set (mtu = 1400)",
                "!F-1400",
            ),
            (
                V4,
                3,
                99,
                Unreachable,
                "Dest Unreachable, Bad Code: 99",
                "!99",
            ),
            (V4, 12, 0, Other, "Parameter problem", "!<12-0>"),
            (V6, 3, 0, TimeExceeded, "Time exceeded: Hop limit", ""),
            (
                V6,
                1,
                4,
                PortUnreachable,
                "Destination unreachable: Port unreachable",
                "",
            ),
            (
                V6,
                1,
                0,
                Unreachable,
                "Destination unreachable: No route",
                "!N",
            ),
            (
                V6,
                1,
                3,
                Unreachable,
                "Destination unreachable: Address unreachable",
                "!H",
            ),
            (V6, 2, 0, TooBig, "Packet too big: mtu=1400", "!F-1400"),
            (V6, 77, 0, Other, "Bad ICMP type: 77", "!<77-0>"),
        ] {
            let error = IcmpError {
                family,
                kind,
                code,
                mtu: 1400,
            };
            assert_eq!(error.meaning(), meaning, "{error:?}");
            assert_eq!((error.text().as_str(), error.mark().as_str()), (text, mark));
        }
    }

    #[test]
    fn every_type_and_code_has_words() {
        for family in [Family::V4, Family::V6] {
            for kind in 0..=u8::MAX {
                for code in 0..=u8::MAX {
                    let error = IcmpError {
                        family,
                        kind,
                        code,
                        mtu: 0,
                    };
                    assert!(!error.text().is_empty());
                    assert!(error.mark().len() < 12);
                }
            }
        }
    }
}
