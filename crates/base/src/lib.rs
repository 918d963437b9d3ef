//! Shared by all other crates: typed identifiers, back-off, durations in Kubernetes' notation,
//! sequence numbers, random numbers from a seed, error chains, texts of system errors and paths of
//! URLs. No side effects and no clock.
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_base::Backoff;
//!
//! let mut backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(300));
//! assert_eq!(backoff.advance(), Duration::from_secs(10));
//! assert_eq!(backoff.advance(), Duration::from_secs(20));
//! ```

pub mod backoff;
pub mod duration;
pub mod error_chain;
pub mod event_reason;
pub mod ids;
pub mod os_error;
pub mod parity;
pub mod seq;
pub mod split_mix;
pub mod url_path;

pub use backoff::Backoff;
pub use error_chain::ErrorChain;
pub use ids::{ContainerId, PodName, PodUid, SandboxId};
pub use os_error::error_text;
pub use seq::Seq;
pub use split_mix::SplitMix;
