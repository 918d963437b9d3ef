//! The pods that should run, and the changes between two such sets.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rubelet_api::{
    annotations::{CONFIG_HASH, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE},
    pod::{Pod, PodSource, StringMap},
};
use rubelet_base::PodName;

/// The desired pods of all manifest sources. Level-triggered: a reader may miss values, as [`diff`]
/// against the last one it has read returns all changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    /// The pods, by name.
    pub pods: BTreeMap<PodName, Arc<Pod>>,
    /// Sources that were read completely at least once since the start.
    pub ready: BTreeSet<PodSource>,
    /// Configured sources that have not been read yet.
    pub waiting_for: BTreeSet<PodSource>,
}

impl Desired {
    /// True when each configured source was read completely at least once. Until then a running pod
    /// that is not in the set may still be desired and must not be killed. True at once if no
    /// source is configured.
    #[must_use]
    pub fn sources_ready(&self) -> bool {
        self.waiting_for.is_empty()
    }
}

/// An operation on pods, in the order in which operations must be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodOperation {
    /// The source no longer defines the pod: terminate and remove it.
    Remove,
    /// A new pod. Without pods: the source is ready and has no new ones.
    Add,
    /// The specification, labels or annotations changed.
    Update,
    /// The API server requests graceful deletion of the pod. Sources of this crate never do: a pod
    /// of a manifest is removed with its manifest.
    Delete,
    /// Only fields that the node does not use changed.
    Reconcile,
}

/// One operation for pods of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceUpdate {
    /// The source.
    pub source: PodSource,
    /// The operation.
    pub op: PodOperation,
    /// The pods, sorted by name; for [`PodOperation::Remove`] their old definitions.
    pub pods: Vec<Arc<Pod>>,
}

/// The changes from `old` to `new`: per source, in the order of [`PodOperation`]. A source that
/// became ready without a pod to add or update results in an empty [`PodOperation::Add`].
#[must_use]
pub fn diff(old: &Desired, new: &Desired) -> Vec<SourceUpdate> {
    let mut changes: BTreeMap<(PodSource, PodOperation), Vec<Arc<Pod>>> = BTreeMap::new();
    let mut add = |op, pod: &Arc<Pod>| {
        changes
            .entry((pod.source, op))
            .or_default()
            .push(Arc::clone(pod));
    };
    for (name, was) in &old.pods {
        if new.pods.get(name).is_none_or(|is| is.uid != was.uid) {
            add(PodOperation::Remove, was);
        }
    }
    for (name, is) in &new.pods {
        match old.pods.get(name).filter(|was| was.uid == is.uid) {
            None => add(PodOperation::Add, is),
            Some(was) if Arc::ptr_eq(was, is) || was == is => {}
            Some(was) if differs(was, is) => add(PodOperation::Update, is),
            Some(_) => add(PodOperation::Reconcile, is),
        }
    }
    for source in new.ready.difference(&old.ready) {
        let told = changes
            .keys()
            .any(|(of, op)| of == source && matches!(op, PodOperation::Add | PodOperation::Update));
        if !told {
            changes.insert((*source, PodOperation::Add), Vec::new());
        }
    }
    changes
        .into_iter()
        .map(|((source, op), pods)| SourceUpdate { source, op, pods })
        .collect()
}

/// True if two versions of a pod differ in specification, labels, or annotations other than the
/// kubelet's own.
#[must_use]
pub fn differs(old: &Pod, new: &Pod) -> bool {
    old.spec != new.spec
        || old.sandbox_definition != new.sandbox_definition
        || old.labels != new.labels
        || !foreign(&old.annotations).eq(foreign(&new.annotations))
}

fn foreign(annotations: &StringMap) -> impl Iterator<Item = (&str, &str)> {
    const OWN: [&str; 4] = [CONFIG_HASH, CONFIG_SOURCE, CONFIG_SEEN, CONFIG_MIRROR];
    annotations
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .filter(|(key, _)| !OWN.contains(key))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rubelet_api::{
        manifest::decode,
        parse::{ParseContext, parse},
    };

    use super::*;

    fn pod(name: &str, source: PodSource, metadata: &str, image: &str, second: i64) -> Arc<Pod> {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {metadata}}}\n\
             spec: {{containers: [{{name: a, image: {image}}}]}}\n"
        );
        let raw = decode(&text).pods.remove(0).expect("a pod");
        let context = ParseContext {
            node_name: "n",
            source,
            origin: "test",
            adopted_uid: None,
            now: Timestamp::from_second(second).expect("a time"),
        };
        Arc::new(parse(raw, &context).expect("a valid pod"))
    }

    fn file(name: &str, metadata: &str, image: &str) -> Arc<Pod> {
        pod(name, PodSource::File, metadata, image, 0)
    }

    fn desired(pods: &[Arc<Pod>], ready: &[PodSource]) -> Desired {
        Desired {
            pods: pods
                .iter()
                .map(|pod| (pod.name.clone(), Arc::clone(pod)))
                .collect(),
            ready: ready.iter().copied().collect(),
            waiting_for: BTreeSet::new(),
        }
    }

    fn shown(old: &Desired, new: &Desired) -> Vec<String> {
        let show = |update: SourceUpdate| {
            let names: Vec<_> = update
                .pods
                .iter()
                .map(|pod| pod.name.name.to_string())
                .collect();
            format!(
                "{} {:?} {}",
                update.source.as_str(),
                update.op,
                names.join(" ")
            )
        };
        diff(old, new).into_iter().map(show).collect()
    }

    #[test]
    fn changes_come_in_the_order_remove_add_update_reconcile() {
        let old = desired(
            &[
                file("gone", "", "x"),
                file("new-image", "", "x"),
                file("same", "", "x"),
            ],
            &[PodSource::File],
        );
        let new = desired(
            &[
                file("new-image", "", "z"),
                file("same", "finalizers: [a/b]", "x"),
                file("b", "", "x"),
                file("a", "", "x"),
            ],
            &[PodSource::File],
        );
        let expected = [
            "file Remove gone-n",
            "file Add a-n b-n",
            "file Update new-image-n",
        ];
        assert_eq!(shown(&old, &new)[..3], expected);
        assert_eq!(shown(&new, &new), [""; 0]);
    }

    #[test]
    fn only_what_matters_for_running_is_an_update() {
        let base = file("p", "", "x");
        for (metadata, image, second, change) in [
            ("", "x", 0, None),
            ("labels: {a: b}", "x", 0, Some(PodOperation::Update)),
            ("annotations: {a: b}", "x", 0, Some(PodOperation::Update)),
            ("", "z", 0, Some(PodOperation::Update)),
            ("", "x", 9, Some(PodOperation::Reconcile)),
        ] {
            let other = pod("p", PodSource::File, metadata, image, second);
            let changes = diff(&desired(&[Arc::clone(&base)], &[]), &desired(&[other], &[]));
            let op = changes.first().map(|update| update.op);
            assert_eq!(op, change, "{metadata} {image} {second}");
        }
    }

    #[test]
    fn a_new_uid_is_a_new_pod() {
        let old = desired(&[file("p", "uid: one", "x")], &[]);
        let new = desired(&[file("p", "uid: two", "x")], &[]);
        assert_eq!(shown(&old, &new), ["file Remove p-n", "file Add p-n"]);
    }

    #[test]
    fn a_source_without_pods_still_reports_that_it_is_ready() {
        let http = pod("h", PodSource::Http, "", "x", 0);
        let old = Desired {
            waiting_for: BTreeSet::from([PodSource::File, PodSource::Http]),
            ..Desired::default()
        };
        assert!(!old.sources_ready());
        let new = desired(&[http], &[PodSource::File, PodSource::Http]);
        assert_eq!(shown(&old, &new), ["file Add ", "http Add h-n"]);
        assert!(new.sources_ready());
    }
}
