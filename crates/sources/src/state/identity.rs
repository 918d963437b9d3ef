//! The UID of a pod's definition: that of the running pod, or a new one, which makes it a new pod.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::{
    annotations::CONFIG_HASH,
    pod::Pod,
    static_uid::{StaticUid, UidOrigin},
};
use rubelet_base::{PodName, PodUid};

use super::seen;

/// The effect of a manifest's edit on its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ManifestEdits {
    /// The pod keeps its UID, and containers that the edit does not affect keep running.
    #[default]
    InPlace,
    /// The pod is terminated, and a new one with another UID starts once the old one is removed, as
    /// in the kubelet. A manifest that is removed and written again counts as edited.
    Replace,
}

impl ManifestEdits {
    /// The value of `rubelet.staticPodEdits`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InPlace => "InPlace",
            Self::Replace => "Replace",
        }
    }
}

/// A manifest pod that was running when the agent started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedPod {
    /// Its UID.
    pub uid: PodUid,
    /// The `kubernetes.io/config.hash` of its last definition; `None` if it is not recorded.
    pub content: Option<Box<str>>,
}

/// Pods that were running when the agent started, by name. A manifest with the same definition
/// takes over their UID, so that nothing restarts.
pub type AdoptedPods = BTreeMap<PodName, Vec<AdoptedPod>>;

/// The identity that a new definition of a pod keeps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KnownPod {
    /// The pod's UID; `None`: derived from its name.
    pub(super) uid: Option<PodUid>,
    /// When it was first seen.
    pub(super) seen: Timestamp,
}

/// A definition in a manifest.
pub(super) struct NewDefinition<'a> {
    pub(super) name: &'a PodName,
    /// Its `kubernetes.io/config.hash`.
    pub(super) content: &'a str,
    /// True if the manifest was removed and written again.
    pub(super) recreated: bool,
}

/// The known pods of one name.
#[derive(Debug, Default)]
pub(super) struct NameFacts<'a> {
    /// The currently desired pod.
    pub(super) current: Option<&'a Pod>,
    /// Pods that were running when the agent started.
    pub(super) adopted: &'a [AdoptedPod],
    /// The UID of the pod that was removed last.
    pub(super) removed: Option<&'a PodUid>,
}

/// Determines whether the definition is that of a known pod.
pub(super) fn identify(
    edits: ManifestEdits,
    new: &NewDefinition<'_>,
    facts: &NameFacts<'_>,
    now: Timestamp,
) -> KnownPod {
    let known = |uid, seen| KnownPod { uid, seen };
    if edits == ManifestEdits::InPlace {
        return match facts.current {
            Some(pod) => known(Some(pod.uid.clone()), seen(pod).unwrap_or(now)),
            None => known(facts.adopted.last().map(|one| one.uid.clone()), now),
        };
    }
    let uids = StaticUid::new(new.name, new.content);
    if let Some(pod) = facts.current {
        let same = pod.annotations.get(CONFIG_HASH).map(|hash| &**hash) == Some(new.content);
        return if same && !new.recreated {
            known(Some(pod.uid.clone()), seen(pod).unwrap_or(now))
        } else {
            known(Some(uids.after(&pod.uid)), now)
        };
    }
    let uid = match (adopt(&uids, new.content, facts.adopted), facts.removed) {
        (Some(uid), _) => uid,
        (None, Some(before)) => uids.after(before),
        (None, None) => uids.first(),
    };
    known(Some(uid), now)
}

/// The pod with this content, if one was running when the agent started. A pod without recorded
/// content matches as well, unless its UID proves otherwise.
fn adopt(uids: &StaticUid, content: &str, adopted: &[AdoptedPod]) -> Option<PodUid> {
    let is_it = |one: &&AdoptedPod| match &one.content {
        Some(recorded) => &**recorded == content,
        None => uids.origin(&one.uid) != UidOrigin::OtherContent,
    };
    // A recorded content is more certain than a missing one.
    let (recorded, others): (Vec<_>, Vec<_>) =
        adopted.iter().partition(|one| one.content.is_some());
    let mut all = recorded.into_iter().chain(others.into_iter().rev());
    all.find(is_it).map(|one| one.uid.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn name() -> PodName {
        PodName::new("default", "web-n")
    }

    fn adopted(uid: &str, content: Option<&str>) -> AdoptedPod {
        AdoptedPod {
            uid: uid.into(),
            content: content.map(Into::into),
        }
    }

    /// The UID that a definition with the content `new` gets beside pods that run.
    fn uid(edits: ManifestEdits, running: &[AdoptedPod]) -> String {
        let new = NewDefinition {
            name: &name(),
            content: "new",
            recreated: false,
        };
        let facts = NameFacts {
            adopted: running,
            ..NameFacts::default()
        };
        let known = identify(edits, &new, &facts, NOW);
        known.uid.map_or_else(String::new, String::from)
    }

    #[test]
    fn a_pod_that_runs_is_adopted_if_its_content_is_the_same() {
        let [old, new] = ["old", "new"].map(|content| StaticUid::new(&name(), content));
        let (other, first) = (old.first(), new.first());
        let again = new.after(&first);
        for (what, running, expected) in [
            ("nothing runs", vec![], first.as_str()),
            (
                "it runs",
                vec![adopted(first.as_str(), Some("new"))],
                first.as_str(),
            ),
            (
                "its record is lost",
                vec![adopted(first.as_str(), None)],
                first.as_str(),
            ),
            (
                "it was made again",
                vec![adopted(again.as_str(), None)],
                again.as_str(),
            ),
            (
                "edited meanwhile",
                vec![adopted(other.as_str(), Some("old"))],
                first.as_str(),
            ),
            (
                "edited, and no record",
                vec![adopted(other.as_str(), None)],
                first.as_str(),
            ),
            (
                "another kubelet's",
                vec![adopted("kubelet", None)],
                "kubelet",
            ),
            (
                "adopted before",
                vec![adopted("kubelet", Some("new"))],
                "kubelet",
            ),
            (
                "and edited since",
                vec![adopted("kubelet", Some("old"))],
                first.as_str(),
            ),
            (
                "the old one still ends",
                vec![
                    adopted(first.as_str(), Some("new")),
                    adopted("kubelet", Some("old")),
                ],
                first.as_str(),
            ),
            (
                "something unknown beside it",
                vec![
                    adopted(again.as_str(), Some("new")),
                    adopted("kubelet", None),
                ],
                again.as_str(),
            ),
        ] {
            assert_eq!(uid(ManifestEdits::Replace, &running), expected, "{what}");
        }
    }

    #[test]
    fn in_place_the_pod_that_runs_is_always_the_one() {
        assert_eq!(uid(ManifestEdits::InPlace, &[]), "");
        for content in [None, Some("new"), Some("old")] {
            let running = [adopted("kubelet", content)];
            assert_eq!(uid(ManifestEdits::InPlace, &running), "kubelet");
        }
    }

    #[test]
    fn one_that_was_removed_is_not_taken_for_the_next() {
        let uids = StaticUid::new(&name(), "new");
        let before = uids.first();
        let new = NewDefinition {
            name: &name(),
            content: "new",
            recreated: false,
        };
        let facts = NameFacts {
            removed: Some(&before),
            ..NameFacts::default()
        };
        let known = identify(ManifestEdits::Replace, &new, &facts, NOW);
        assert_eq!(known.uid, Some(uids.after(&before)));
    }
}
