//! Messages and gRPC glue of `runtime.v1`, generated from `proto/runtime/v1/api.proto` by `cargo
//! xtask codegen`. The proto documents messages and fields.
#![allow(missing_docs, unreachable_pub, unused_qualifications)]
#![allow(clippy::all, clippy::needless_pass_by_value, clippy::disallowed_types)]

include!("generated/runtime.v1.rs");
