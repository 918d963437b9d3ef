//! Shares and reserves, by table and over random lives.

use std::{net::IpAddr, time::Duration};

use tokio::time::Instant;

use super::{
    Admission, AdmissionLimits, AdmissionTable, ConnectionId, Limit, PeerSource, PeerTrust,
};

const LIMITS: AdmissionLimits = AdmissionLimits {
    total: 12,
    unauthenticated: 8,
    unauthenticated_per_source: 4,
    authenticated: 10,
    authenticated_per_source: 6,
    sessions: 3,
};

fn source(number: u32) -> PeerSource {
    PeerSource::V4(number.into())
}

struct Lives {
    table: AdmissionTable,
    now: Instant,
}

impl Lives {
    fn new() -> Self {
        Self {
            table: AdmissionTable::new(LIMITS),
            now: Instant::now(),
        }
    }

    /// Each connection comes a second after the one before.
    fn open(&mut self, from: PeerSource, trust: PeerTrust) -> Admission {
        self.now += Duration::from_secs(1);
        self.table.open(self.now, from, trust)
    }

    fn unauthenticated(&mut self, from: u32) -> ConnectionId {
        match self.open(source(from), PeerTrust::Unauthenticated) {
            Admission::Kept(id) | Admission::InPlaceOf(id, ..) => id,
            Admission::Refused(limit) => panic!("refused: {limit:?}"),
        }
    }

    fn known(&mut self, from: u32) -> ConnectionId {
        let id = self.unauthenticated(from);
        self.table.prove(id);
        id
    }
}

#[test]
fn addresses_belong_to_sources() {
    for (address, expected) in [
        ("127.0.0.1", PeerSource::Loopback),
        ("127.9.8.7", PeerSource::Loopback),
        ("::1", PeerSource::Loopback),
        ("::ffff:127.3.2.1", PeerSource::Loopback),
        ("10.1.2.3", PeerSource::V4([10, 1, 2, 3].into())),
        ("::ffff:10.1.2.3", PeerSource::V4([10, 1, 2, 3].into())),
        ("2001:db8:1:2:3::4", PeerSource::V6(0x2001_0db8_0001_0002)),
        ("2001:db8:1:2:ffff::", PeerSource::V6(0x2001_0db8_0001_0002)),
        ("2001:db8:1:3::", PeerSource::V6(0x2001_0db8_0001_0003)),
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(PeerSource::of(address), expected, "{address}");
    }
}

#[test]
fn a_source_beyond_its_share_closes_its_stalest_unauthenticated_connection() {
    let mut lives = Lives::new();
    let ids: Vec<_> = (0..4).map(|_| lives.unauthenticated(1)).collect();
    lives.now += Duration::from_secs(1);
    lives.table.progress(lives.now, ids[0]);
    let admission = lives.open(source(1), PeerTrust::Unauthenticated);
    assert!(
        matches!(admission, Admission::InPlaceOf(_, victim, Limit::Source) if victim == ids[1]),
        "{admission:?}"
    );
}

#[test]
fn a_full_table_closes_a_connection_of_the_source_with_most_unauthenticated_ones() {
    let mut lives = Lives::new();
    let first = lives.unauthenticated(1);
    let of_two: Vec<_> = (0..4).map(|_| lives.unauthenticated(2)).collect();
    for _ in 0..3 {
        lives.unauthenticated(3);
    }
    let admission = lives.open(source(4), PeerTrust::Unauthenticated);
    assert!(
        matches!(admission, Admission::InPlaceOf(_, victim, Limit::Total) if victim == of_two[0]),
        "{admission:?}"
    );
    assert!(lives.table.has(first));
}

#[test]
fn authenticated_peers_have_reserved_slots() {
    let mut lives = Lives::new();
    for from in 0..100 {
        lives.unauthenticated(from);
    }
    assert_eq!(lives.table.entries.len(), LIMITS.unauthenticated);
    // Each of them takes an unreserved slot first, and then one in the reserve.
    let known: Vec<_> = (0..4).map(|_| lives.known(1000)).collect();
    for from in 0..100 {
        lives.unauthenticated(from);
    }
    assert!(known.iter().all(|id| lives.table.has(*id)));
    assert_eq!(lives.table.count(None, PeerTrust::Authenticated), 4);
}

#[test]
fn authenticated_peers_leave_slots_for_peers_that_are_about_to_authenticate() {
    let mut lives = Lives::new();
    let ids: Vec<_> = (0..40).map(|number| lives.known(number % 4)).collect();
    let kept = ids.iter().filter(|id| lives.table.has(**id)).count();
    assert_eq!(kept, LIMITS.total);
    assert_eq!(
        lives.table.count(None, PeerTrust::Authenticated),
        LIMITS.authenticated
    );
    lives.unauthenticated(99);
}

#[test]
fn authenticated_peers_of_one_source_count_as_unauthenticated_beyond_their_share() {
    let mut lives = Lives::new();
    for _ in 0..20 {
        lives.known(1);
    }
    assert_eq!(lives.table.count(None, PeerTrust::Authenticated), 6);
    assert_eq!(lives.table.count(None, PeerTrust::Unauthenticated), 4);
}

#[test]
fn users_that_the_kernel_names_are_refused_beyond_their_share_and_root_is_not() {
    let mut lives = Lives::new();
    let user = PeerSource::Uid(1000);
    for _ in 0..LIMITS.authenticated_per_source {
        assert!(matches!(
            lives.open(user, PeerTrust::Authenticated),
            Admission::Kept(_)
        ));
    }
    assert_eq!(
        lives.open(user, PeerTrust::Authenticated),
        Admission::Refused(Limit::Source)
    );
    for _ in 0..6 {
        let root = lives.open(PeerSource::Uid(0), PeerTrust::Root);
        assert!(matches!(root, Admission::Kept(_)));
    }
    assert_eq!(
        lives.open(PeerSource::Uid(0), PeerTrust::Root),
        Admission::Refused(Limit::Total)
    );
}

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[test]
fn the_limits_hold_and_no_authenticated_peer_is_closed_in_random_lives() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut lives = Lives::new();
        let mut known = Vec::new();
        let mut all = Vec::new();
        for _ in 0..300 {
            let pick = |random: &mut Random, all: &[ConnectionId]| {
                let count = u32::try_from(all.len().max(1)).unwrap();
                all.get(random.below(count) as usize).copied()
            };
            match random.below(6) {
                0..=2 => {
                    let from = source(random.below(6));
                    match lives.open(from, PeerTrust::Unauthenticated) {
                        Admission::Kept(id) => all.push(id),
                        Admission::InPlaceOf(id, victim, _) => {
                            assert!(!known.contains(&victim), "seed {seed}");
                            all.push(id);
                        }
                        Admission::Refused(_) => {
                            // Only where every connection is authenticated, so never here.
                            panic!("seed {seed}: a newcomer was refused");
                        }
                    }
                }
                3 => {
                    if let Some(id) = pick(&mut random, &all) {
                        lives.table.prove(id);
                        let is = |entry: &super::AdmittedConnection| {
                            entry.trust == PeerTrust::Authenticated
                        };
                        if lives.table.entries.get(&id).is_some_and(is) {
                            known.push(id);
                        }
                    }
                }
                4 => {
                    if let Some(id) = pick(&mut random, &all) {
                        lives.table.progress(lives.now, id);
                    }
                }
                _ => {
                    if let Some(id) = pick(&mut random, &all) {
                        lives.table.close(id);
                        known.retain(|one| *one != id);
                    }
                }
            }
            let table = &lives.table;
            assert!(table.entries.len() <= LIMITS.total, "seed {seed}");
            assert!(table.count(None, PeerTrust::Unauthenticated) <= LIMITS.unauthenticated);
            assert!(table.count(None, PeerTrust::Authenticated) <= LIMITS.authenticated);
            for from in 0..6 {
                let of = |trust| table.count(Some(source(from)), trust);
                assert!(of(PeerTrust::Unauthenticated) <= LIMITS.unauthenticated_per_source);
                assert!(of(PeerTrust::Authenticated) <= LIMITS.authenticated_per_source);
            }
            assert!(known.iter().all(|id| table.has(*id)), "seed {seed}");
        }
    }
}

#[test]
fn sessions_take_no_other_places_and_are_closed_for_nobody() {
    let mut lives = Lives::new();
    let ids = [
        lives.unauthenticated(1),
        lives.known(1),
        lives.known(2),
        lives.known(3),
    ];
    for (id, begins) in ids.iter().zip([true, true, true, false]) {
        assert_eq!(lives.table.begin_session(*id), begins);
    }
    for from in 0..100 {
        lives.unauthenticated(from);
        lives.known(from);
    }
    assert!(ids[..3].iter().all(|id| lives.table.has(*id)));
    let unauthenticated = lives.table.count(None, PeerTrust::Unauthenticated);
    assert!(
        unauthenticated <= LIMITS.unauthenticated,
        "{unauthenticated}"
    );
    while let Some(shed) = lives.table.shed() {
        assert!(!ids[..3].contains(&shed));
    }
    // One that has ended makes room, and one that was refused is as before.
    lives.table.close(ids[0]);
    let again = lives.unauthenticated(1);
    assert!(lives.table.begin_session(again));
    lives.table.end_session(again);
    assert_eq!(lives.table.shed(), Some(again));
    assert!(!lives.table.begin_session(again));
}
