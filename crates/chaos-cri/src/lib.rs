//! A proxy between an agent and a CRI runtime that injects reproducible faults.
//!
//! [`Chaos`] listens on a unix socket and forwards every call to the runtime's socket. Without
//! rules it changes nothing. A [`Rule`] defines which fault occurs when; `chaos-cri --help`
//! explains the syntax. The same seed and rules make the same decisions in every run, call by call;
//! only the order of a client's calls may differ.
//!
//! It never starts or stops a runtime, and never calls it on its own: each call to the runtime is one
//! that a client made, or its repetition by a rule. No product code uses this crate.
//!
//! ```
//! use chaos_cri::{Rule, Rules};
//!
//! let rule: Rule = "ContainerStatus pod=web-* hang".parse().expect("a rule");
//! let rules = Rules::new(7, vec![rule]);
//! assert_eq!(rules.iter().next().expect("one").to_string(), "ContainerStatus pod=web-* hang");
//! assert!("ContainerStatus pod=web-* vanish".parse::<Rule>().is_err());
//! ```

mod change;
mod chaos;
mod code;
mod decide;
mod dice;
mod frame;
mod journal;
mod profile;
mod proxy;
mod rpc;
mod rule;
mod subject;

pub use chaos::{Chaos, StartError};
pub use decide::Rules;
pub use dice::Dice;
pub use journal::Injected;
pub use profile::{PROFILES, profile};
pub use rule::{Rule, RuleError, parse_file};
