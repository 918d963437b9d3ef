//! Parses the bytes of a manifest into its pods and problems.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rubelet_api::{
    hash::content_hash,
    manifest::{ManifestError, decode_bytes},
    parse::{FieldError, FieldErrorKind, ParseContext, parse},
    pod::{Pod, PodSource},
};
use rubelet_base::PodName;

use super::identity::KnownPod;
use crate::status::{Problem, Reason};

/// The contents of a manifest.
#[derive(Debug, Default)]
pub(super) struct ParsedManifest {
    /// Its valid pods, each name once.
    pub(super) pods: Vec<Pod>,
    /// The problems of the others.
    pub(super) problems: Vec<Problem>,
    /// True if it only contains whitespace: probably a file that is being written.
    pub(super) blank: bool,
}

/// Decodes, defaults and validates. `known` returns the identity that a pod keeps, from its name
/// and content. A bug in the parser affects only this manifest.
pub(super) fn interpret(
    bytes: &[u8],
    node_name: &str,
    source: PodSource,
    origin: &str,
    known: impl Fn(&PodName, &str) -> KnownPod,
) -> ParsedManifest {
    let work = || read(bytes, node_name, source, origin, known);
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| ParsedManifest {
        problems: vec![Problem::whole(
            Reason::ParseError,
            "the parser failed on this manifest; please report it with the manifest",
        )],
        ..ParsedManifest::default()
    })
}

fn read(
    bytes: &[u8],
    node_name: &str,
    source: PodSource,
    origin: &str,
    known: impl Fn(&PodName, &str) -> KnownPod,
) -> ParsedManifest {
    let blank = bytes.iter().all(u8::is_ascii_whitespace);
    let mut found = ParsedManifest {
        blank,
        ..ParsedManifest::default()
    };
    for pod in decode_bytes(bytes).pods {
        let raw = match pod {
            Ok(raw) => raw,
            Err(error) => {
                found.problems.extend(decoding(&error, node_name));
                continue;
            }
        };
        let name = name_of(raw.namespace(), raw.name(), node_name);
        let KnownPod { uid, seen } = known(&name, &content_hash(raw.value()));
        let has_name = !raw.name().is_empty();
        let context = ParseContext {
            node_name,
            source,
            origin,
            adopted_uid: uid,
            now: seen,
        };
        match parse(raw, &context) {
            Err(errors) => found.problems.extend(
                errors
                    .into_iter()
                    .map(|e| field(e, has_name.then_some(&name))),
            ),
            Ok(pod) if found.pods.iter().any(|other| other.name == pod.name) => {
                let message =
                    format!("pod {name} is defined twice in this manifest; the first one counts");
                let problem = Problem::whole(Reason::Duplicate, message);
                found.problems.push(Problem {
                    pod: Some(name.to_string()),
                    ..problem
                });
            }
            Ok(pod) => found.pods.push(pod),
        }
    }
    found
}

/// The name under which a pod of a manifest runs.
fn name_of(namespace: Option<&str>, name: &str, node_name: &str) -> PodName {
    let namespace = namespace
        .filter(|namespace| !namespace.is_empty())
        .unwrap_or("default");
    PodName::new(namespace, &format!("{name}-{}", node_name.to_lowercase()))
}

fn decoding(error: &ManifestError, node_name: &str) -> Vec<Problem> {
    let pod = error
        .pod
        .as_ref()
        .filter(|(_, name)| !name.is_empty())
        .map(|(namespace, name)| name_of(namespace.as_deref(), name, node_name).to_string());
    let problem = |error: &rubelet_yaml::DecodeError| Problem {
        reason: match &error.field {
            _ if error.message.starts_with("unknown field") => Reason::UnknownField,
            Some(_) => Reason::Invalid,
            None => Reason::ParseError,
        },
        line: error.position.map(|position| position.line),
        column: error.position.map(|position| position.column),
        field: error.field.clone(),
        message: error.message.clone(),
        pod: pod.clone(),
    };
    error.errors.iter().map(problem).collect()
}

fn field(error: FieldError, name: Option<&PodName>) -> Problem {
    Problem {
        reason: match error.kind {
            FieldErrorKind::NotSupportedYet => Reason::NotSupported,
            _ => Reason::Invalid,
        },
        line: error.position.map(|position| position.line),
        column: error.position.map(|position| position.column),
        field: Some(error.field),
        message: error.message,
        pod: name.map(ToString::to_string),
    }
}
