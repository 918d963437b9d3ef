//! The pod as Rubelet understands it: parsed once from the Kubernetes types into compact, typed
//! values. What it can't hold is refused with a message that names the field.
//!
//! - [`pod`], [`container`], [`probe`], [`volume`], [`security`], [`network`], [`resources`]: the compact types.
//! - [`scheduling`]: what a pod asks of its node. [`objects`]: the objects of the API server that it uses.
//! - [`downward`]: what a pod may see of itself.
//! - [`status`]: the status that Rubelet reports.
//! - [`manifest`]: decodes the text of a file or URL into pods.
//! - [`mod@parse`]: defaulting, validation and conversion into the compact types.
//! - [`fields`]: the support matrix that the parser consults.
//! - [`wire`]: the way back, to the Kubernetes form.
//! - [`hash`], [`annotations`], [`image_ref`], [`qos`], [`quantity`]: rules of one page each.
//!
//! It never reads a file, a clock or the API server: text, objects and the time are arguments.
//!
//! ```
//! use rubelet_api::{manifest, parse::{ParseContext, parse}, pod::PodSource};
//!
//! let text = "
//! apiVersion: v1
//! kind: Pod
//! metadata: {name: web}
//! spec: {containers: [{name: main, image: nginx}]}";
//! let raw = manifest::decode(text).pods.remove(0).expect("a v1 Pod");
//! let context = ParseContext {
//!     node_name: "node-1",
//!     source: PodSource::File,
//!     origin: "/etc/kubernetes/manifests/web.yaml",
//!     adopted_uid: None,
//!     now: jiff::Timestamp::UNIX_EPOCH,
//! };
//! let pod = parse(raw, &context).expect("a valid pod");
//! assert_eq!(pod.name.to_string(), "default/web-node-1");
//! ```

pub mod aggregation;
pub mod amount;
pub mod annotations;
pub mod container;
pub mod downward;
pub mod fields;
pub mod hash;
pub mod image_ref;
pub mod manifest;
pub mod network;
pub mod objects;
pub mod parse;
pub mod pod;
pub mod pod_amounts;
pub mod probe;
pub mod qos;
pub mod quantity;
pub mod resource_name;
pub mod resources;
pub mod scheduling;
pub mod security;
pub mod static_uid;
pub mod status;
pub mod volume;
pub mod volume_plugin;
pub mod wire;
