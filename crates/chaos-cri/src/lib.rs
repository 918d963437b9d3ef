//! A proxy between an agent and a CRI runtime that injects faults which a seed decides.
//!
//! [`Chaos`] listens on a unix socket and hands every call on to the runtime's. Without rules it
//! changes nothing. A [`Rule`] says what is to go wrong and when; `chaos-cri --help` explains all
//! of it. A seed and a list of rules decide alike in every run, call by call; only the order in
//! which a client makes its calls is its own.
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
