//! Strict decoding of YAML and JSON documents, with the position of every error; and lenient
//! decoding of JSON from other programs ([`read_json`]).
//!
//! It never reads a file, and never decides what a document means: which fields exist, and of which
//! type they are, is up to the types that the caller decodes into.
//!
//! ```
//! let text = "kind: Pod\nspec:\n  nodeNam: a\n";
//! #[derive(serde::Deserialize)]
//! struct Pod { kind: String, spec: Spec }
//! #[derive(serde::Deserialize)]
//! #[serde(rename_all = "camelCase")]
//! struct Spec { #[serde(default)] node_name: String }
//!
//! let documents = rubelet_yaml::documents(text).expect("the text is YAML");
//! let decoded = documents[0].decode::<Pod>().expect("the types fit");
//! assert_eq!(decoded.value.kind, "Pod");
//! assert_eq!(
//!     decoded.unknown[0].to_string(),
//!     r#"line 3, column 3: spec.nodeNam: unknown field; did you mean "nodeName"?"#
//! );
//! # assert_eq!(decoded.value.spec.node_name, "");
//! ```
//!
//! Normally a text is parsed once into [`serde_json::Value`]s. Only if an error must be shown the
//! document is parsed a second time, into a tree of positions.

mod decode;
mod document;
mod emit;
mod error;
mod nearest;
mod parse;
mod path;
mod position_tree;
mod received;
mod snippet;
mod split;
mod syntax_error;
mod value;
mod wording;

pub use document::{Decoded, Document, documents};
pub use emit::to_yaml;
pub use error::{DecodeError, Position};
pub use nearest::nearest;
pub use path::join_path;
pub use received::{Received, SkippedField, read_json, read_value};
pub use value::{DecodedValue, decode_value};
