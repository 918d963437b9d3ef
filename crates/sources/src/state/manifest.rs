//! One manifest over time: its current contents, and what is held because those can't be used.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::Timestamp;
use rubelet_api::pod::{Pod, PodSource};
use rubelet_base::{PodName, PodUid};

use super::{ManifestKey, interpret::Interpreted, report};
use crate::status::{ManifestEvent, Problem, Reason};

/// A pod that a manifest defines.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) pod: Arc<Pod>,
    /// The manifest's text at the time.
    pub(super) text: Arc<str>,
    /// The manifest no longer defines it in a usable way.
    pub(super) held: bool,
}

/// One file or URL.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// Length and hash of the content that was last taken in.
    digest: Option<(usize, u64)>,
    pub(super) skipped: Option<Reason>,
    pub(super) claims: Vec<Claim>,
    pub(super) problems: Vec<Problem>,
    /// Pods that belong to other manifests.
    pub(super) duplicates: Vec<Problem>,
    /// Problems that an event has reported.
    raised: BTreeSet<(Reason, String)>,
    pub(super) last_good: Option<Timestamp>,
    pub(super) last_change: Option<Timestamp>,
}

impl Manifest {
    /// The file is not a manifest, by its name or type.
    pub(super) fn skip(&mut self, reason: Reason, now: Timestamp) {
        if self.skipped != Some(reason) {
            *self = Self {
                skipped: Some(reason),
                last_change: Some(now),
                ..Self::default()
            };
        }
    }

    pub(super) fn is_same(&self, bytes: &[u8]) -> bool {
        self.digest == Some(digest(bytes))
    }

    /// The content can't be read.
    pub(super) fn refuse(&mut self, problem: Problem, now: Timestamp) {
        self.skipped = None;
        if self.problems.first() != Some(&problem) || self.problems.len() != 1 {
            self.last_change = Some(now);
        }
        self.digest = None;
        self.hold();
        self.problems = vec![problem];
    }

    /// The content changed. `current` returns the desired pods, which stay the same objects where
    /// nothing changed.
    pub(super) fn replace(
        &mut self,
        bytes: &[u8],
        found: Interpreted,
        current: impl Fn(&PodName) -> Option<Arc<Pod>>,
        now: Timestamp,
    ) {
        let Interpreted {
            pods,
            mut problems,
            blank,
        } = found;
        self.digest = Some(digest(bytes));
        self.skipped = None;
        self.last_change = Some(now);
        if blank && !self.claims.is_empty() {
            let message = "the file is empty; its pods keep their last definition; \
                           delete the file to remove them";
            problems.push(Problem::whole(Reason::EmptyFile, message));
        }
        let text: Arc<str> = String::from_utf8_lossy(bytes).into();
        let claims = pods.into_iter().map(|pod| {
            let same = current(&pod.name).filter(|current| **current == pod);
            let pod = same.unwrap_or_else(|| Arc::new(pod));
            Claim {
                pod,
                text: Arc::clone(&text),
                held: false,
            }
        });
        let mut claims: Vec<Claim> = claims.collect();
        // Collecting takes over the room of the pods, which is many times that of claims.
        claims.shrink_to_fit();
        if problems.is_empty() {
            self.last_good = Some(now);
            self.claims = claims;
        } else {
            // A pod that is missing may be the one that can't be read.
            self.hold();
            self.claims
                .retain(|old| claims.iter().all(|new| new.pod.name != old.pod.name));
            self.claims.extend(claims);
        }
        self.problems = problems;
    }

    /// Whether the pods of this manifest are unknown.
    pub(super) fn is_undetermined(&self) -> bool {
        !self.problems.is_empty() && self.claims.is_empty()
    }

    /// Notes the pods that another manifest has.
    pub(super) fn judge_duplicates(
        &mut self,
        (source, origin): (PodSource, &str),
        owners: &BTreeMap<PodName, ManifestKey>,
    ) {
        let problem = |claim: &Claim| {
            let name = &claim.pod.name;
            let owner = owners
                .get(name)
                .filter(|owner| owner.0 != source || &*owner.1 != origin)?;
            let message = format!(
                "pod {name} is defined in {} already; rename or remove one of them",
                owner.1
            );
            let pod = Some(name.to_string());
            Some(Problem {
                pod,
                ..Problem::whole(Reason::Duplicate, message)
            })
        };
        self.duplicates = self.claims.iter().filter_map(problem).collect();
    }

    /// Everything that is wrong.
    pub(super) fn all_problems(&self) -> impl Iterator<Item = &Problem> + Clone {
        self.problems.iter().chain(&self.duplicates)
    }

    /// Problems without an event so far, as one event per pod. `find` looks up desired pods.
    pub(super) fn new_events(
        &mut self,
        origin: &str,
        find: impl Fn(&str) -> Option<(PodName, PodUid)>,
    ) -> Vec<ManifestEvent> {
        let key = |problem: &Problem| (problem.reason, problem.to_string());
        let now: BTreeSet<_> = self.all_problems().map(key).collect();
        let mut fresh: Vec<(Option<&str>, Vec<&Problem>)> = Vec::new();
        for problem in self
            .all_problems()
            .filter(|problem| !self.raised.contains(&key(problem)))
        {
            let pod = problem.pod.as_deref();
            match fresh.iter_mut().find(|(of, _)| *of == pod) {
                Some((_, problems)) => problems.push(problem),
                None => fresh.push((pod, vec![problem])),
            }
        }
        let mut events: Vec<ManifestEvent> = fresh
            .into_iter()
            .map(|(pod, problems)| {
                let desired = pod.and_then(&find);
                report::failed(origin, &problems, pod, desired)
            })
            .collect();
        if now.is_empty() && !self.raised.is_empty() {
            events.push(report::recovered(origin));
        }
        self.raised = now;
        events
    }

    fn hold(&mut self) {
        for claim in &mut self.claims {
            claim.held = true;
        }
    }
}

fn digest(bytes: &[u8]) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    (bytes.len(), hasher.finish())
}
