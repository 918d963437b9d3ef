//! The pod as Rubelet understands it: parsed once from the Kubernetes types into compact, typed
//! values. What it can't hold is refused with a message that names the field.
//!
//! - [`pod`], [`container`], [`probe`], [`volume`], [`security`], [`network`], [`resources`]: the compact types.
//! - [`scheduling`]: what a pod asks of its node. [`objects`]: what it draws from the API server.
//! - [`downward`]: what a pod may see of itself.
//! - [`status`]: what Rubelet says of a pod.
//! - [`manifest`]: the text of a file or URL, taken apart into pods as they were written.
//! - [`mod@parse`]: defaulting, validation and conversion into the compact types.
//! - [`fields`]: the support matrix that the parser consults.
//! - [`wire`]: the way back, to the Kubernetes form.
//! - [`hash`], [`annotations`], [`image_ref`], [`qos`], [`quantity`]: rules of one page each.

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
pub mod probe;
pub mod qos;
pub mod quantity;
pub mod resources;
pub mod scheduling;
pub mod security;
pub mod status;
pub mod volume;
pub mod wire;
