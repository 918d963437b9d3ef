//! The search for the path MTU: the longest packet that arrives without being fragmented. Bisection,
//! shortened by what routers say.

use std::{net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{millis, packet::Family};

/// Number of tries of a length before silence counts as "too long".
pub const TRIES: u32 = 3;

/// The state of a search. Lengths are those of packets with all headers, in bytes.
#[derive(Debug, Clone)]
pub struct MtuSearch {
    /// The longest packet that was answered; 0 before the first answer.
    answered: usize,
    /// The longest packet that may still be answered.
    most: usize,
    least: usize,
    trying: usize,
    tries: u32,
    silent: bool,
}

/// The next action of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MtuNext {
    /// Send a packet of this length.
    Try(usize),
    /// It is over.
    Found(PathMtu),
    /// Not even the shortest packet is answered.
    Unanswered,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathMtu {
    /// The length of the longest packet that was answered, in bytes.
    pub mtu: usize,
    /// Longer packets vanish without an ICMP message: connections that rely on it hang.
    pub black_hole: bool,
}

/// A report of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum MtuEvent {
    /// A length was tried.
    #[serde(rename_all = "camelCase")]
    Tried {
        /// The target, as it was given.
        target: String,
        /// Length of the packet, in bytes.
        length: usize,
        /// The result of the packet.
        result: MtuResult,
        /// The sender of the reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<IpAddr>,
        /// The round trip time.
        #[serde(
            with = "millis::optional",
            rename = "rttMs",
            default,
            skip_serializing_if = "Option::is_none"
        )]
        rtt: Option<Duration>,
    },
    /// The search is over.
    #[serde(rename_all = "camelCase")]
    PathMtu {
        /// The target, as it was given.
        target: String,
        /// Its address.
        address: IpAddr,
        /// The result; absent if not even the shortest packet is answered.
        #[serde(flatten)]
        found: Option<PathMtu>,
    },
}

/// The result of a packet of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MtuResult {
    /// It was answered.
    Answered,
    /// It is too long for a link of this machine, which has this MTU.
    TooLongHere(usize),
    /// It is too long for a link on the way, which has this MTU; 0 if the router does not say it.
    TooLong(usize),
    /// Nothing came back.
    Silence,
}

impl MtuSearch {
    /// A search for a target of this family.
    #[must_use]
    pub fn new(family: Family) -> Self {
        // The shortest MTU of a link: RFC 791 and RFC 8200.
        let least = match family {
            Family::V4 => 68,
            Family::V6 => 1280,
        };
        Self {
            answered: 0,
            most: 65_535,
            least,
            trying: least,
            tries: 0,
            silent: false,
        }
    }

    /// The next action.
    #[must_use]
    pub fn next(&self) -> MtuNext {
        if self.most < self.least {
            return MtuNext::Unanswered;
        }
        if self.answered >= self.most {
            return MtuNext::Found(PathMtu {
                mtu: self.answered,
                black_hole: self.silent,
            });
        }
        MtuNext::Try(self.trying)
    }

    /// Notes what happened to the packet of this length that was tried.
    pub fn on_result(&mut self, length: usize, result: MtuResult) {
        if length != self.trying {
            return;
        }
        match result {
            MtuResult::Answered => {
                self.answered = length;
                self.choose(self.most);
            }
            MtuResult::TooLongHere(mtu) | MtuResult::TooLong(mtu) => {
                // A router that names no MTU, or an impossible one, only says that this is too long.
                let named =
                    (mtu > self.answered && mtu >= self.least && mtu < length).then_some(mtu);
                self.most = named.unwrap_or(length.saturating_sub(1)).max(self.answered);
                self.silent = false;
                match named {
                    Some(mtu) => self.choose(mtu),
                    None => self.bisect(),
                }
            }
            MtuResult::Silence => {
                self.tries += 1;
                if self.tries < TRIES {
                    return;
                }
                self.most = length.saturating_sub(1).max(self.answered);
                self.silent = true;
                self.bisect();
            }
        }
    }

    /// Tries the longest possible packet first, since it is often answered.
    fn choose(&mut self, length: usize) {
        // What was not answered at this length before is bisected.
        if self.silent {
            return self.bisect();
        }
        (self.trying, self.tries) = (length, 0);
    }

    fn bisect(&mut self) {
        let low = self.answered.max(self.least.saturating_sub(1));
        self.trying = (low + self.most).div_ceil(2);
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches on a path with this MTU; routers name it, or `silent` ones drop what is too long.
    fn search(family: Family, mtu: usize, local: usize, silent: bool) -> (MtuNext, u32) {
        let mut search = MtuSearch::new(family);
        let mut sent = 0;
        loop {
            let MtuNext::Try(length) = search.next() else {
                return (search.next(), sent);
            };
            sent += 1;
            assert!(sent < 100, "{search:?}");
            search.on_result(
                length,
                match length {
                    length if length > local => MtuResult::TooLongHere(local),
                    length if length <= mtu => MtuResult::Answered,
                    _ if silent => MtuResult::Silence,
                    _ => MtuResult::TooLong(mtu),
                },
            );
        }
    }

    #[test]
    fn what_routers_say_is_tried_at_once() {
        let found = MtuNext::Found(PathMtu {
            mtu: 1400,
            black_hole: false,
        });
        assert_eq!(search(Family::V4, 1400, 1500, false), (found, 4));
    }

    #[test]
    fn a_target_that_answers_nothing_is_asked_three_times() {
        assert_eq!(
            search(Family::V6, 0, 1500, true),
            (MtuNext::Unanswered, TRIES)
        );
    }

    proptest! {
        #[test]
        fn the_mtu_is_found_whatever_routers_do(
            mtu in 1280_usize..=65_535, local in 1280_usize..=65_535, silent: bool,
        ) {
            let least = mtu.min(local);
            let (found, _) = search(Family::V6, mtu, local, silent);
            let black_hole = silent && mtu < local;
            prop_assert_eq!(found, MtuNext::Found(PathMtu { mtu: least, black_hole }));
        }

        #[test]
        fn it_ends_whatever_is_said(
            results in proptest::collection::vec((0_u8..4, 0_usize..70_000), 300),
        ) {
            let mut search = MtuSearch::new(Family::V4);
            for (kind, mtu) in results {
                let MtuNext::Try(length) = search.next() else {
                    return Ok(());
                };
                prop_assert!((68..=65_535).contains(&length));
                search.on_result(length, match kind {
                    0 => MtuResult::Answered,
                    1 => MtuResult::TooLong(mtu),
                    2 => MtuResult::TooLongHere(mtu),
                    _ => MtuResult::Silence,
                });
            }
            prop_assert!(!matches!(search.next(), MtuNext::Try(_)));
        }
    }
}
