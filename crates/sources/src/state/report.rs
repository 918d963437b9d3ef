//! The outputs of the state: statuses and last good pods.

use std::collections::BTreeMap;

use rubelet_api::pod::PodSource;
use rubelet_base::PodName;

use super::{
    LastGoodPod, ManifestKey, ReadFailure, SourceRecord, manifest::Manifest,
    manifest_events::summary,
};
use crate::status::{ManifestPod, ManifestState, ManifestStatus, Problem};

pub(super) fn statuses(
    sources: &BTreeMap<PodSource, SourceRecord>,
    owners: &BTreeMap<PodName, ManifestKey>,
) -> Vec<ManifestStatus> {
    let mut statuses = Vec::new();
    for (source, record) in sources {
        let read_failure = record.read_failure.as_ref();
        if let Some(read_failure) =
            read_failure.filter(|t| !record.manifests.contains_key(&t.origin))
        {
            statuses.push(of_source(*source, read_failure));
        }
        for (origin, manifest) in &record.manifests {
            let read_failure = read_failure.filter(|read_failure| read_failure.origin == *origin);
            statuses.push(of_manifest(
                (*source, origin),
                manifest,
                read_failure,
                owners,
            ));
        }
    }
    statuses
}

fn of_source(source: PodSource, read_failure: &ReadFailure) -> ManifestStatus {
    ManifestStatus {
        origin: read_failure.origin.clone(),
        source: source.as_str(),
        state: ManifestState::Bad,
        pods: Vec::new(),
        reason: Some(read_failure.problem.reason),
        message: read_failure.problem.to_string(),
        problems: vec![read_failure.problem.clone()],
        last_good_time: None,
        last_change_time: None,
    }
}

fn of_manifest(
    (source, origin): (PodSource, &str),
    manifest: &Manifest,
    read_failure: Option<&ReadFailure>,
    owners: &BTreeMap<PodName, ManifestKey>,
) -> ManifestStatus {
    let read_failure = read_failure.map(|read_failure| &read_failure.problem);
    let problems: Vec<&Problem> = read_failure
        .into_iter()
        .chain(manifest.all_problems())
        .collect();
    let mine = |name: &PodName| {
        owners
            .get(name)
            .is_some_and(|owner| owner.0 == source && &*owner.1 == origin)
    };
    let pods: Vec<ManifestPod> = manifest
        .defined
        .iter()
        .filter(|entry| mine(&entry.pod.name))
        .map(|entry| ManifestPod {
            namespace: (*entry.pod.name.namespace).into(),
            name: (*entry.pod.name.name).into(),
            uid: entry.pod.uid.as_str().into(),
        })
        .collect();
    let state = match (
        manifest.skipped,
        problems.is_empty(),
        manifest.defined.is_empty(),
    ) {
        (Some(_), ..) => ManifestState::Skipped,
        (None, false, _) => ManifestState::Bad,
        (None, true, true) => ManifestState::Empty,
        (None, true, false) => ManifestState::Ok,
    };
    let mut message = summary(problems.iter().copied());
    let held = read_failure.is_some() || manifest.defined.iter().any(|entry| entry.held);
    if state == ManifestState::Bad && held && !pods.is_empty() {
        message.push_str(" (its last good version counts)");
    }
    ManifestStatus {
        origin: origin.into(),
        source: source.as_str(),
        state,
        pods,
        reason: manifest
            .skipped
            .or(problems.first().map(|problem| problem.reason)),
        message,
        problems: problems.into_iter().cloned().collect(),
        last_good_time: manifest.last_good,
        last_change_time: manifest.last_change,
    }
}

pub(super) fn held(
    sources: &BTreeMap<PodSource, SourceRecord>,
    owners: &BTreeMap<PodName, ManifestKey>,
) -> Vec<LastGoodPod> {
    let mut pods = Vec::new();
    for (source, record) in sources {
        for (origin, manifest) in &record.manifests {
            let all = record.read_failure.is_some();
            for entry in manifest.defined.iter().filter(|entry| all || entry.held) {
                let name = &entry.pod.name;
                if owners
                    .get(name)
                    .is_some_and(|(s, o)| s == source && o == origin)
                {
                    pods.push(LastGoodPod {
                        source: source.as_str().into(),
                        origin: origin.clone(),
                        namespace: (*name.namespace).into(),
                        name: (*name.name).into(),
                        text: (*entry.text).into(),
                    });
                }
            }
        }
    }
    pods.sort();
    pods
}
