//! Events about manifests.

use rubelet_base::{PodName, PodUid};

use crate::status::{EventReason, ManifestEvent, Problem};

/// Maximum number of problems in one message.
const SHOWN_PROBLEMS: usize = 3;

pub(super) fn failed(
    origin: &str,
    problems: &[&Problem],
    pod: Option<&str>,
    desired: Option<(PodName, PodUid)>,
) -> ManifestEvent {
    let named = pod.and_then(|pod| pod.split_once('/'));
    let (pod, uid) = match desired {
        Some((name, uid)) => (Some(name), Some(uid)),
        None => (
            named.map(|(namespace, name)| PodName::new(namespace, name)),
            None,
        ),
    };
    ManifestEvent {
        reason: EventReason::FailedManifest,
        cause: problems.first().map(|problem| problem.reason),
        message: format!("{origin}: {}", summary(problems.iter().copied())),
        origin: origin.into(),
        pod,
        uid,
    }
}

pub(super) fn recovered(origin: &str) -> ManifestEvent {
    ManifestEvent {
        reason: EventReason::ManifestRecovered,
        cause: None,
        message: format!("{origin}: valid again"),
        origin: origin.into(),
        pod: None,
        uid: None,
    }
}

/// The first problems in one line.
pub(super) fn summary<'a>(problems: impl Iterator<Item = &'a Problem> + Clone) -> String {
    let shown: Vec<String> = problems
        .clone()
        .take(SHOWN_PROBLEMS)
        .map(Problem::to_string)
        .collect();
    let more = problems.count().saturating_sub(SHOWN_PROBLEMS);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    shown.join("; ") + &more
}
