//! What every other crate may use: typed identifiers, back-off, durations as Kubernetes writes
//! them, sequence numbers, repeatable chance, the printing of error chains, the table of events, paths of URLs and
//! the words of comparisons with the kubelet. No effects
//! and no clock.

pub mod backoff;
pub mod cgroup;
pub mod duration;
pub mod error_chain;
pub mod event_text;
pub mod ids;
pub mod parity;
pub mod seq;
pub mod split_mix;
pub mod url_path;

pub use backoff::Backoff;
pub use error_chain::ErrorChain;
pub use ids::{ContainerId, PodName, PodUid, SandboxId};
pub use seq::Seq;
pub use split_mix::SplitMix;
