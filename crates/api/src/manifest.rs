//! Manifests: the text of a file or URL, taken apart into pods as they were written.

mod header;
pub(crate) mod quantities;

use std::{fmt, sync::Arc};

use k8s_openapi::api::core::v1 as k8s;
use rubelet_yaml::{DecodeError, Decoded, Document, Position, documents};
use serde_json::Value;

use header::Kind;

/// What a manifest's text holds.
#[derive(Debug)]
pub struct ManifestFile {
    /// The pods in the order of the text; a bad one does not hide the others.
    pub pods: Vec<Result<RawPod, ManifestError>>,
    /// Why the text has no pods, without an error.
    pub note: Option<ManifestNote>,
}

/// Why a manifest without mistakes holds no pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestNote {
    /// Nothing but blanks and comments.
    Empty,
    /// A list without items.
    EmptyList,
}

impl fmt::Display for ManifestNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty",
            Self::EmptyList => "a list without pods",
        })
    }
}

/// One pod of a manifest that could not be decoded, or the whole text where nothing could.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestError {
    /// Which document of the text, from 0; empty documents are not counted.
    pub document: usize,
    /// `metadata.namespace` (if written) and `metadata.name`, where they can be read.
    pub pod: Option<(Option<String>, String)>,
    /// What is wrong, with positions and fields of the whole text; at least one.
    pub errors: Vec<DecodeError>,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestError {}

/// A pod as it was written: it has the types of a v1 Pod and no unknown fields.
#[derive(Debug)]
pub struct RawPod {
    pub(crate) pod: Box<k8s::Pod>,
    pub(crate) written: Written,
}

/// The part of a document that holds one pod.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    document: Arc<Document>,
    item: Option<usize>,
}

impl Written {
    /// The pod as JSON.
    pub(crate) fn value(&self) -> &Value {
        let whole = self.document.value();
        self.item
            .and_then(|item| whole.get("items")?.get(item))
            .unwrap_or(whole)
    }

    /// Where a field of the pod is in the text.
    pub(crate) fn position_of(&self, field: &str) -> Option<Position> {
        self.document.position_of(&self.path(field))
    }

    fn path(&self, field: &str) -> String {
        match self.item {
            None => field.to_owned(),
            Some(item) if field.is_empty() => format!("items[{item}]"),
            Some(item) => format!("items[{item}].{field}"),
        }
    }

    fn error_at(&self, field: &str, message: impl Into<String>) -> DecodeError {
        self.document.error_at(&self.path(field), message)
    }
}

impl RawPod {
    /// `metadata.name` as written, without the node's name; empty where it is missing.
    #[must_use]
    pub fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    /// `metadata.namespace` as written.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.pod.metadata.namespace.as_deref()
    }

    /// Which document of the text, from 0.
    #[must_use]
    pub fn document(&self) -> usize {
        self.written.document.index()
    }

    /// The pod as JSON, as it was written.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.written.value()
    }
}

/// Takes apart the text of one file or of one URL's answer: YAML or JSON, any number of documents,
/// each a v1 Pod, a v1 PodList, or a v1 List of Pods.
///
/// A text that is not well-formed gives one error; otherwise each pod stands for itself.
#[must_use]
pub fn decode(text: &str) -> ManifestFile {
    let documents = match documents(text) {
        Ok(documents) => documents,
        Err(error) => return ManifestFile::damaged(error),
    };
    let mut file = ManifestFile {
        pods: Vec::new(),
        note: None,
    };
    if documents.is_empty() {
        file.note = Some(ManifestNote::Empty);
    }
    for document in documents {
        file.add(Arc::new(document));
    }
    file
}

/// As [`decode`], for bytes that may not be text.
#[must_use]
pub fn decode_bytes(bytes: &[u8]) -> ManifestFile {
    match std::str::from_utf8(bytes) {
        Ok(text) => decode(text),
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
            ManifestFile::damaged(DecodeError {
                document: 0,
                position: Some(Position { line, column: 1 }),
                field: None,
                message: "not UTF-8 text; the file is damaged or not a manifest".to_owned(),
                snippet: None,
            })
        }
    }
}

impl ManifestFile {
    fn damaged(error: DecodeError) -> Self {
        let error = ManifestError {
            document: error.document,
            pod: None,
            errors: vec![error],
        };
        Self {
            pods: vec![Err(error)],
            note: None,
        }
    }

    fn add(&mut self, document: Arc<Document>) {
        let whole = Written {
            document,
            item: None,
        };
        match header::kind(&whole) {
            Err(error) => self.pods.push(Err(failed(&whole, vec![error]))),
            Ok(Kind::Pod) => self.pods.push(pod(whole)),
            Ok(kind) => match header::items(&whole) {
                Err(errors) => self.pods.push(Err(failed(&whole, errors))),
                Ok(0) => self.note = Some(ManifestNote::EmptyList),
                Ok(count) => {
                    for item in 0..count {
                        let item = Written {
                            item: Some(item),
                            ..whole.clone()
                        };
                        self.pods.push(match header::check_item(&item, kind) {
                            Some(error) => Err(failed(&item, vec![error])),
                            None => pod(item),
                        });
                    }
                }
            },
        }
    }
}

fn failed(written: &Written, errors: Vec<DecodeError>) -> ManifestError {
    let text = |pointer| {
        written
            .value()
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    ManifestError {
        document: written.document.index(),
        pod: text("/metadata/name").map(|name| (text("/metadata/namespace"), name)),
        errors,
    }
}

fn pod(written: Written) -> Result<RawPod, ManifestError> {
    match typed(&written) {
        Ok(Decoded { value, unknown }) => {
            let status = written.path("status");
            let mut errors = unknown;
            // A pod copied from a cluster has a status, which is dropped anyway.
            errors.retain(|error| {
                let below = error
                    .field
                    .as_deref()
                    .and_then(|field| field.strip_prefix(&status));
                !below.is_some_and(|rest| rest.starts_with(['.', '[']))
            });
            if errors.is_empty() {
                return Ok(RawPod {
                    pod: Box::new(value),
                    written,
                });
            }
            errors.sort_by_key(|error| error.position);
            Err(failed(&written, errors))
        }
        Err(error) => Err(failed(&written, vec![*error])),
    }
}

fn typed(written: &Written) -> Result<Decoded<k8s::Pod>, Box<DecodeError>> {
    let Some(text) = quantities::as_texts(written.value()) else {
        return written.document.decode_at(&written.path(""));
    };
    // The decoder reads documents: give it one with the same fields, and translate the positions.
    let translate = |error: DecodeError| {
        written.error_at(error.field.as_deref().unwrap_or_default(), error.message)
    };
    let documents = documents(&text).map_err(|error| Box::new(translate(error)))?;
    match documents.first().map(Document::decode) {
        Some(Ok(Decoded { value, unknown })) => Ok(Decoded {
            value,
            unknown: unknown.into_iter().map(translate).collect(),
        }),
        Some(Err(error)) => Err(Box::new(translate(*error))),
        None => Err(Box::new(written.error_at("", "expected a mapping (Pod)"))),
    }
}
