//! The cryptography of TLS.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The only cryptography provider in the process.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
