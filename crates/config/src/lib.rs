//! KubeletConfiguration: fields, flags, drop-ins, defaults, validation.
//!
//! The caller reads the command line with [`parse_flags`], reads the files that it names, and gets
//! from [`resolve`] one valid configuration with the origin of each value, or one error:
//!
//! ```
//! use rubelet_config::{Sources, parse_flags, resolve};
//!
//! let args = ["--config=kubelet.yaml", "--max-pods=50"].map(str::to_owned);
//! let flags = parse_flags(args.into_iter()).expect("the flags exist");
//! let text = "apiVersion: kubelet.config.k8s.io/v1beta1
//! kind: KubeletConfiguration
//! maxPods: 20
//! syncFrequency: 30s
//! ";
//! let file = flags.config().map(|path| (path, text));
//! let resolved = resolve(Sources { file, drop_ins: &[], flags: &flags }).expect("it is valid");
//! assert_eq!(resolved.config.max_pods, 50);
//! assert_eq!(resolved.origins.of("maxPods").to_string(), "flag --max-pods");
//! assert_eq!(resolved.origins.of("syncFrequency").to_string(), "file kubelet.yaml:4");
//! assert_eq!(resolved.origins.of("resolvConf").to_string(), "default");
//! ```
//!
//! Without `--config` a kubelet has legacy defaults: an open read-only port and no authentication. On a
//! node of a cluster (`--kubeconfig`) Rubelet has them too, and warns. Without a cluster it has the
//! defaults of `v1beta1`, and opens a port only if it is configured.

mod credential_providers;
mod defaults;
mod embedded;
mod endpoint;
mod entries;
mod error;
pub mod field;
mod fields;
mod flags;
mod gaps;
mod gates;
mod go_duration;
mod layer;
mod markdown;
mod merge;
mod origins;
mod quantity;
mod resolve;
mod rubelet_options;
mod server;
mod validation;
mod warnings;

pub use credential_providers::{
    CredentialProvider, CredentialProvidersError, TokenAttributes, TokenCacheType,
    merge_credential_providers, parse_credential_providers,
};
pub use embedded::EMBEDDED;
pub use endpoint::Invocation;
pub use error::ConfigError;
pub use fields::*;
pub use flags::{Flag, FlagError, FlagKind, Flags, Role, all_flags, parse_flags};
pub use gates::{FeatureGates, Gate, GateError, GateOwner, Stage};
pub use markdown::{configuration_markdown, flags_help, flags_markdown};
pub use origins::{Origin, Origins};
pub use quantity::Quantity;
pub use resolve::{Leaf, Resolved, Sources, drop_in_order, resolve};
pub use rubelet_options::{AuditOptions, EmbeddedRuntime, PeerPingOptions, RubeletOptions};
pub use warnings::Warning;
