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
    parse::{FieldError, api_pod, is_pod_uid},
    pod::{Deletion, Pod, PodSource, PodSpec, StringMap},
    status::Phase,
};
use rubelet_base::{PodName, PodUid};
use rubelet_node_plan::admission::Rejection;
use rubelet_yaml::{Received, SkippedField, read_json};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{ApiPod, resize};

/// Reason of pods that request what this node does not support (kubelet: `PodFeatureUnsupported`).
const UNSUPPORTED: &str = "PodFeatureUnsupported";
/// Reason of pods that no kubelet can run.
const INVALID: &str = "InvalidPod";

/// The parts of a pod's JSON that are read before the whole of it is.
#[derive(Deserialize)]
struct PodParts<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Box<str>,
    namespace: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    generation: i64,
    labels: StringMap,
    annotations: StringMap,
    deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PhaseOnly {
    phase: Box<str>,
}

/// An object without a usable UID or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidObject {
    /// Its namespace and name, where it has one.
    pub(super) name: Option<PodName>,
    /// The error.
    pub(super) problem: String,
}

/// A pod's metadata and status, read before its specification.
pub(super) struct PodHeader {
    /// The pod, without what to run.
    pub(super) api: ApiPod,
    /// Fields of the metadata that can't be read.
    pub(super) left_out: Vec<SkippedField>,
    /// Equal for two versions with the same requests.
    pub(super) fingerprint: u64,
}

/// Reads the metadata of a pod.
///
/// # Errors
/// It has no UID that can be used, or no name.
pub(super) fn read_header(json: &RawValue) -> Result<PodHeader, InvalidObject> {
    let invalid = |problem: &dyn std::fmt::Display| InvalidObject {
        name: None,
        problem: problem.to_string(),
    };
    let PodParts {
        metadata,
        spec,
        status,
    } = serde_json::from_str(json.get()).map_err(|error| invalid(&error))?;
    let metadata = metadata.map_or("{}", RawValue::get);
    let Received {
        value: metadata,
        mut left_out,
    } = read_json::<Metadata>(metadata.as_bytes()).map_err(|error| invalid(&error))?;
    let status = status.map_or("{}", RawValue::get);
    let phase = read_json::<PhaseOnly>(status.as_bytes());
    for one in &mut left_out {
        one.field.insert_str(0, "metadata.");
    }
    let name = PodName::new(&metadata.namespace, &metadata.name);
    if !is_pod_uid(&metadata.uid) || metadata.name.is_empty() {
        let bad = |one: &&SkippedField| ["metadata.uid", "metadata.name"].contains(&&*one.field);
        return Err(InvalidObject {
            problem: match left_out.iter().find(bad) {
                Some(one) => one.to_string(),
                None if metadata.name.is_empty() => "metadata.name: missing".to_owned(),
                None => "metadata.uid: missing, or not a UID".to_owned(),
            },
            name: (!metadata.name.is_empty()).then_some(name),
        });
    }
    let mut hasher = DefaultHasher::new();
    let deletion = metadata.deletion_timestamp.map(|at| Deletion {
        at,
        grace: Duration::from_secs(metadata.deletion_grace_period_seconds.unwrap_or(0)),
    });
    (&metadata.uid, metadata.generation, &metadata.labels).hash(&mut hasher);
    (&metadata.annotations, spec.map(RawValue::get)).hash(&mut hasher);
    let moment = deletion.map(|deletion| (deletion.at.as_nanosecond(), deletion.grace));
    moment.hash(&mut hasher);
    let annotations = &metadata.annotations;
    Ok(PodHeader {
        api: ApiPod {
            name,
            uid: PodUid::from(&*metadata.uid),
            resource_version: metadata.resource_version,
            mirror: annotations.get(CONFIG_MIRROR).cloned(),
            config_hash: annotations.get(CONFIG_HASH).cloned(),
            labels: metadata.labels,
            deletion,
            status: Arc::from(status),
            phase: phase.ok().and_then(|read| phase_of(&read.value.phase)),
            pod: None,
            shows: None,
        },
        left_out,
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

/// The parsed pod, or why it can't be used.
pub(super) struct Parsed {
    /// The pod; without containers if its specification is invalid.
    pub(super) pod: Arc<Pod>,
    /// Why it can't run here.
    pub(super) rejection: Option<Rejection>,
    /// Paths of fields that this release does not know or enforce.
    pub(super) unknown: Vec<String>,
    /// Fields that can't be read and that the first look does not read.
    pub(super) left_out: Vec<SkippedField>,
    /// The message of the event, if the pod must be resized.
    pub(super) resize: Option<String>,
}

/// Parses a pod's specification. A pod that is `known` keeps the resources that it has.
pub(super) fn parse(json: &RawValue, api: &ApiPod, node_name: &str, known: Option<&Pod>) -> Parsed {
    let mut value: Value = match serde_json::from_str(json.get()) {
        Ok(value) => value,
        Err(error) => {
            let error = SkippedField {
                field: String::new(),
                problem: error.to_string(),
            };
            return unreadable(json, api, node_name, vec![error]);
        }
    };
    let known = known.and_then(|pod| serde_json::from_str(&pod.json).ok());
    let resize = resize::hold(&mut value, known.as_ref());
    match api_pod(value, node_name) {
        Ok(mut parsed) => Parsed {
            unknown: parsed.unknown_fields,
            left_out: parsed.left_out,
            rejection: (!parsed.unsupported.is_empty()).then(|| Rejection {
                reason: UNSUPPORTED.into(),
                message: listed(&parsed.unsupported).into(),
            }),
            pod: {
                parsed.pod.resize_infeasible = resize.as_ref().map(|_| resize::MESSAGE);
                Arc::new(parsed.pod)
            },
            resize,
        },
        Err(errors) => {
            let errors = errors.into_iter().map(|error| SkippedField {
                field: error.field,
                problem: error.message,
            });
            unreadable(json, api, node_name, errors.collect())
        }
    }
}

fn listed(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// A pod in which nothing can be run; it is there to be rejected.
fn unreadable(json: &RawValue, api: &ApiPod, node_name: &str, errors: Vec<SkippedField>) -> Parsed {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
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
        resize_infeasible: None,
        json: json.get().into(),
    };
    Parsed {
        pod: Arc::new(pod),
        rejection: Some(Rejection {
            reason: INVALID.into(),
            message: texts.join("; ").into(),
        }),
        unknown: Vec::new(),
        left_out: errors,
        resize: None,
    }
}
