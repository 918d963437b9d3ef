//! Manifest sources: the desired pods from manifest directories, files and URLs.
//!
//! Directory and URL tasks only read; [`state`] evaluates the scans and has no side effects. There
//! are three outputs, each in a `watch` channel, which can't overflow:
//!
//! - [`desired`]: the pods to run, and the comparison of two such sets.
//! - [`status`]: the status of each manifest, for `rubelet get manifests`, and events.
//! - [`state::LastGoodPod`]: the last good definition of pods whose manifest is currently not
//!   usable. A caller that stores these definitions keeps those pods across a restart.
//!
//! Rules:
//!
//! - A manifest that is invalid, half-written or empty does not affect its pods: their last good
//!   definition stays, and none of them is removed while any part of the manifest is invalid.
//! - A pod name belongs to one manifest. The one whose pod runs keeps it, else the first by path;
//!   the other one reports a duplicate in its status, and takes over when the first one is removed.
//! - A source that can't be read is not an empty source. A missing or unmounted directory and a URL
//!   that fails change nothing; a source is ready only after it was read once. Upstream treats a
//!   missing path as an empty one, and stops all its pods.
//!
//! ```
//! use std::sync::Arc;
//!
//! use rubelet_sources::desired::{Desired, PodOperation, diff};
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
//! assert_eq!(changes[0].op, PodOperation::Add);
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
