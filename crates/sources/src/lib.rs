//! Desired pods: what manifest folders, files and URLs say this node should run.
//!
//! Folder and URL are only looked at; what a look means is decided by [`state`], which has no
//! effects. Out come three things, each in a `watch` channel so that nothing can overflow:
//!
//! - [`desired`]: the pods to run, and how to tell what changed between two such sets.
//! - [`status`]: what became of each manifest, for `rubelet get manifests`, and events.
//! - [`state::HeldPod`]: the last good definition of pods whose manifest can't be used now. Who
//!   keeps these texts over a restart and gives them back keeps those pods too.
//!
//! Rules that are worth knowing:
//!
//! - A manifest that is bad, half-written or empty changes nothing for the pods it had: their last
//!   good definition stays, and as long as anything in it is bad none of them is removed.
//! - A pod name belongs to one manifest. The one whose pod runs keeps it, else the first by name;
//!   the other says so in its status, and takes over when the first one goes.
//! - A source that can't be read is no source without pods. A folder that is not there, is no
//!   longer there, or whose file system was unmounted, and a URL that fails, leave everything as
//!   it is; a source counts as ready only after it was read once. Upstream takes a missing path
//!   for an empty one and would stop all its pods.

mod debounce;
pub mod desired;
mod folder;
mod names;
mod spawn;
pub mod state;
pub mod status;
mod url;

pub use spawn::{FileConfig, SourcesConfig, SourcesError, SourcesHandle, UrlConfig, spawn};
pub use url::{Roots, TargetError};
