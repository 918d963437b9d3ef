//! Cipher suites by their names in Go.

use rustls::{SupportedCipherSuite, version::TLS12};

use super::TlsSettingsError;

/// Names that Go knows and rustls does not support: no forward secrecy, CBC, or worse.
const WEAK: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// The chosen suites.
pub(super) struct Suites {
    pub(super) chosen: Vec<SupportedCipherSuite>,
    pub(super) any_of_tls12: bool,
    /// Names of weak ones.
    pub(super) left_out: Vec<String>,
}

impl Suites {
    /// Chooses by names; no names mean all. Those of TLS 1.3 are always included.
    pub(super) fn choose(
        all: &[SupportedCipherSuite],
        names: &[String],
    ) -> Result<Self, TlsSettingsError> {
        let mut left_out = Vec::new();
        for name in names {
            if WEAK.contains(&name.as_str()) {
                left_out.push(name.clone());
            } else if !all.iter().any(|suite| is_called(suite, name)) {
                return Err(TlsSettingsError::Suite(name.clone()));
            }
        }
        let wanted = |suite: &&SupportedCipherSuite| {
            !is_of_tls12(suite)
                || names.is_empty()
                || names.iter().any(|name| is_called(suite, name))
        };
        let chosen: Vec<_> = all.iter().filter(wanted).copied().collect();
        Ok(Self {
            any_of_tls12: chosen.iter().any(is_of_tls12),
            chosen,
            left_out,
        })
    }
}

fn is_of_tls12(suite: &SupportedCipherSuite) -> bool {
    suite.version().version == TLS12.version
}

fn is_called(suite: &SupportedCipherSuite, name: &str) -> bool {
    let own = suite.suite().as_str().unwrap_or_default();
    match own.strip_prefix("TLS13_") {
        // rustls puts the version into the name.
        Some(rest) => name.strip_prefix("TLS_") == Some(rest),
        // Go once left out the hash in these names, and still accepts the short form.
        None => {
            own == name || (own.contains("CHACHA20") && own.strip_suffix("_SHA256") == Some(name))
        }
    }
}
