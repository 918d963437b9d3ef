//! What every other crate may use: typed identifiers, back-off, durations as Kubernetes writes
//! them, sequence numbers, repeatable chance and the printing of error chains. No effects and no clock.

pub mod backoff;
pub mod cgroup;
pub mod duration;
pub mod error_chain;
pub mod ids;
pub mod seq;
pub mod split_mix;

pub use backoff::Backoff;
pub use error_chain::ErrorChain;
pub use ids::{ContainerId, PodName, PodUid, SandboxId};
pub use seq::Seq;
pub use split_mix::SplitMix;
