//! Desired pods: those that manifest directories, files and URLs assign to this node.
//!
//! Directory and URL are only read; [`state`] decides what a scan means, and has no
//! effects. Out come three things, each in a `watch` channel so that nothing can overflow:
//!
//! - [`desired`]: the pods to run, and how to compare two such sets.
//! - [`status`]: the status of each manifest, for `rubelet get manifests`, and events.
//! - [`state::HeldPod`]: the last good definition of pods whose manifest can't be used now. A caller
//!   that stores these texts over a restart keeps those pods, too.
//!
//! Rules:
//!
//! - A manifest that is bad, half-written or empty changes nothing for the pods it had: their last
//!   good definition stays, and as long as anything in it is bad none of them is removed.
//! - A pod name belongs to one manifest. The one whose pod runs keeps it, else the first by name;
//!   the other reports that in its status, and takes over when the first one is removed.
//! - A source that can't be read is not an empty source. A missing or unmounted directory and a URL
//!   that fails change nothing; a source is ready only after it was read once. Upstream treats a
//!   missing path as an empty one, and stops all its pods.
//!
//! ```
//! use std::sync::Arc;
//!
//! use rubelet_sources::desired::{Desired, Op, diff};
//! # use rubelet_api::{manifest, parse::{ParseContext, parse}, pod::PodSource};
//! # let text = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: b}]}}";
//! # let context = ParseContext {
//! #     node_name: "node-1",
//! #     source: PodSource::File,
//! #     origin: "web.yaml",
//! #     adopted_uid: None,
//! #     now: jiff::Timestamp::UNIX_EPOCH,
//! # };
//! # let raw = manifest::decode(text).pods.remove(0).expect("a v1 Pod");
//! # let pod = Arc::new(parse(raw, &context).expect("a valid pod"));
//!
//! let before = Desired::default();
//! let mut after = Desired::default();
//! after.pods.insert(pod.name.clone(), pod);
//! let changes = diff(&before, &after);
//! assert_eq!(changes[0].op, Op::Add);
//! assert_eq!(changes[0].pods.len(), 1);
//! ```

mod debounce;
pub mod desired;
mod directory;
mod names;
mod spawn;
pub mod state;
pub mod status;
mod url;

pub use spawn::{FileConfig, SourcesConfig, SourcesError, SourcesHandle, UrlConfig, spawn};
pub use url::{Roots, TargetError};
