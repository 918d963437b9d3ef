//! One pod of the API server, from its JSON.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use rubelet_api::{
    annotations::{CONFIG_HASH, CONFIG_MIRROR},
    parse::{FieldError, api_pod},
    pod::{Deletion, Pod, PodSource, PodSpec, StringMap},
    status::Phase,
};
use rubelet_base::{PodName, PodUid};
use rubelet_kubelet::cluster_view::Rejection;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ApiPod;

/// Reason of pods that ask for what this node does not do (kubelet: `PodFeatureUnsupported`).
const UNSUPPORTED: &str = "PodFeatureUnsupported";
/// Reason of pods that no kubelet can run.
const INVALID: &str = "InvalidPod";

/// The parts of a pod's JSON that are looked at before the whole of it is.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: Box<str>,
    #[serde(default)]
    namespace: Box<str>,
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    labels: StringMap,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<u64>,
}

#[derive(Deserialize)]
struct PhaseOnly {
    phase: Option<Box<str>>,
}

/// What is known of a pod at a first look.
pub(super) struct Glance {
    /// The pod, without what to run.
    pub(super) api: ApiPod,
    /// Equal for two versions that ask for the same.
    pub(super) fingerprint: u64,
}

/// Looks at a pod.
///
/// # Errors
/// The JSON is not that of a pod.
pub(super) fn glance(json: &RawValue) -> Result<Glance, serde_json::Error> {
    let Written {
        metadata,
        spec,
        status,
    } = serde_json::from_str(json.get())?;
    let annotations = metadata.annotations.map_or("{}", RawValue::get);
    let mut hasher = DefaultHasher::new();
    let deletion = metadata.deletion_timestamp.map(|at| Deletion {
        at,
        grace: Duration::from_secs(metadata.deletion_grace_period_seconds.unwrap_or(0)),
    });
    (&metadata.uid, metadata.generation, &metadata.labels).hash(&mut hasher);
    (annotations, spec.map(RawValue::get)).hash(&mut hasher);
    let moment = deletion.map(|deletion| (deletion.at.as_nanosecond(), deletion.grace));
    moment.hash(&mut hasher);
    let annotations: StringMap = serde_json::from_str(annotations)?;
    let status = status.map_or("{}", RawValue::get);
    let PhaseOnly { phase } = serde_json::from_str(status)?;
    Ok(Glance {
        api: ApiPod {
            name: PodName::new(&metadata.namespace, &metadata.name),
            uid: PodUid::from(&*metadata.uid),
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            mirror: annotations.get(CONFIG_MIRROR).cloned(),
            config_hash: annotations.get(CONFIG_HASH).cloned(),
            deletion,
            status: Arc::from(status),
            phase: phase.as_deref().and_then(phase_of),
            pod: None,
        },
        fingerprint: hasher.finish(),
    })
}

fn phase_of(text: &str) -> Option<Phase> {
    let all = [
        Phase::Pending,
        Phase::Running,
        Phase::Succeeded,
        Phase::Failed,
    ];
    all.into_iter().find(|phase| phase.as_str() == text)
}

/// What to run of a pod, or why it can't.
pub(super) struct Parsed {
    /// The pod; without containers if it makes no sense.
    pub(super) pod: Arc<Pod>,
    /// Why it can't run here.
    pub(super) rejection: Option<Rejection>,
    /// Paths of fields that this release does not know or enforce.
    pub(super) unknown: Vec<String>,
}

/// Parses what a pod asks for.
pub(super) fn parse(json: &RawValue, api: &ApiPod, node_name: &str) -> Parsed {
    let value = match serde_json::from_str(json.get()) {
        Ok(value) => value,
        Err(error) => return unreadable(json, api, node_name, error.to_string()),
    };
    match api_pod(value, node_name) {
        Ok(parsed) => Parsed {
            unknown: ignored(parsed.unknown_fields, &parsed.unenforced),
            rejection: (!parsed.unsupported.is_empty()).then(|| Rejection {
                reason: UNSUPPORTED.into(),
                message: listed(&parsed.unsupported).into(),
            }),
            pod: Arc::new(parsed.pod),
        },
        Err(errors) => unreadable(json, api, node_name, listed(&errors)),
    }
}

fn ignored(unknown: Vec<String>, unenforced: &[FieldError]) -> Vec<String> {
    let unenforced = unenforced.iter().map(|error| error.field.clone());
    unknown.into_iter().chain(unenforced).collect()
}

fn listed(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// A pod in which nothing can be run; it is there to be rejected.
fn unreadable(json: &RawValue, api: &ApiPod, node_name: &str, message: String) -> Parsed {
    let pod = Pod {
        uid: api.uid.clone(),
        name: api.name.clone(),
        labels: api.labels.clone(),
        annotations: StringMap::new(),
        generation: 0,
        created: None,
        deletion: api.deletion,
        source: PodSource::Api,
        spec: PodSpec {
            node_name: node_name.into(),
            ..PodSpec::default()
        },
        sandbox_definition: None,
        json: json.get().into(),
    };
    Parsed {
        pod: Arc::new(pod),
        rejection: Some(Rejection {
            reason: INVALID.into(),
            message: message.into(),
        }),
        unknown: Vec::new(),
    }
}
