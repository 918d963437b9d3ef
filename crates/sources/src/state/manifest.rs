//! One manifest over time: its current content, and its last good pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::Timestamp;
use rubelet_api::pod::{Pod, PodSource};
use rubelet_base::{PodName, PodUid};

use super::{ManifestKey, interpret::ParsedManifest, manifest_events};
use crate::status::{ManifestEvent, Problem, Reason};

/// A pod that a manifest defines.
#[derive(Debug, Clone)]
pub(super) struct DefinedPod {
    pub(super) pod: Arc<Pod>,
    /// The manifest's text with this definition.
    pub(super) text: Arc<str>,
    /// True if the manifest no longer has a usable definition of it.
    pub(super) held: bool,
}

/// One file or URL.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// Length and hash of the last parsed content.
    digest: Option<(usize, u64)>,
    pub(super) skipped: Option<Reason>,
    pub(super) defined: Vec<DefinedPod>,
    pub(super) problems: Vec<Problem>,
    /// Problems of pods that other manifests own.
    pub(super) duplicates: Vec<Problem>,
    /// Problems for which an event was raised.
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

    /// The content changed. `current` returns the desired pods, whose objects are kept if they are
    /// unchanged.
    pub(super) fn replace(
        &mut self,
        bytes: &[u8],
        found: ParsedManifest,
        current: impl Fn(&PodName) -> Option<Arc<Pod>>,
        now: Timestamp,
    ) {
        let ParsedManifest {
            pods,
            mut problems,
            blank,
        } = found;
        self.digest = Some(digest(bytes));
        self.skipped = None;
        self.last_change = Some(now);
        if blank && !self.defined.is_empty() {
            let message = "the file is empty; its pods keep their last definition; \
                           delete the file to remove them";
            problems.push(Problem::whole(Reason::EmptyFile, message));
        }
        let text: Arc<str> = String::from_utf8_lossy(bytes).into();
        let defined = pods.into_iter().map(|pod| {
            let same = current(&pod.name).filter(|current| **current == pod);
            let pod = same.unwrap_or_else(|| Arc::new(pod));
            DefinedPod {
                pod,
                text: Arc::clone(&text),
                held: false,
            }
        });
        let mut defined: Vec<DefinedPod> = defined.collect();
        // `collect` reuses the allocation of the pods, which is many times larger.
        defined.shrink_to_fit();
        if problems.is_empty() {
            self.last_good = Some(now);
            self.defined = defined;
        } else {
            // A missing pod may be the one that is invalid.
            self.hold();
            self.defined
                .retain(|old| defined.iter().all(|new| new.pod.name != old.pod.name));
            self.defined.extend(defined);
        }
        self.problems = problems;
    }

    /// True if the pods of this manifest are unknown.
    pub(super) fn is_undetermined(&self) -> bool {
        !self.problems.is_empty() && self.defined.is_empty()
    }

    /// Updates the problems of pods that another manifest owns.
    pub(super) fn update_duplicates(
        &mut self,
        (source, origin): (PodSource, &str),
        owners: &BTreeMap<PodName, ManifestKey>,
    ) {
        let problem = |entry: &DefinedPod| {
            let name = &entry.pod.name;
            let owner = owners
                .get(name)
                .filter(|owner| owner.0 != source || &*owner.1 != origin)?;
            let message = format!(
                "pod {name} is already defined in {}; rename or remove one of them",
                owner.1
            );
            let pod = Some(name.to_string());
            Some(Problem {
                pod,
                ..Problem::whole(Reason::Duplicate, message)
            })
        };
        self.duplicates = self.defined.iter().filter_map(problem).collect();
    }

    /// All problems.
    pub(super) fn all_problems(&self) -> impl Iterator<Item = &Problem> + Clone {
        self.problems.iter().chain(&self.duplicates)
    }

    /// Problems for which no event was raised yet, as one event per pod. `find` looks up desired
    /// pods.
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
                manifest_events::failed(origin, &problems, pod, desired)
            })
            .collect();
        if now.is_empty() && !self.raised.is_empty() {
            events.push(manifest_events::recovered(origin));
        }
        self.raised = now;
        events
    }

    fn hold(&mut self) {
        for entry in &mut self.defined {
            entry.held = true;
        }
    }
}

fn digest(bytes: &[u8]) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    (bytes.len(), hasher.finish())
}
