//! TLS as configured: versions, cipher suites, and who is asked for a certificate.

mod suites;
mod verifier;

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::{
    ServerConfig, SupportedProtocolVersion,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{NoServerSessionStorage, ResolvesServerCert},
    version::{TLS12, TLS13},
};

use self::{suites::Suites, verifier::AskForAny};
use super::client_ca::Bundle;

/// The name of HTTP/2 in a TLS handshake.
pub(super) const HTTP2: &[u8] = b"h2";

/// Why TLS can't be set up as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsSettingsError {
    /// `tlsMinVersion` is not a known version.
    #[error(
        "tlsMinVersion: unknown tls version {0:?}; use VersionTLS12 or VersionTLS13, or leave it out"
    )]
    Version(String),
    /// `tlsCipherSuites` contains an unknown name.
    #[error("tlsCipherSuites: Cipher suite {0} not supported or doesn't exist")]
    Suite(String),
    /// None of `tlsCurvePreferences` is supported.
    #[error("tlsCurvePreferences: none of {0:?} is supported; supported are {1:?}")]
    Curves(Vec<u16>, Vec<u16>),
}

/// Versions, cipher suites and key exchanges of the port.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    provider: Arc<CryptoProvider>,
    versions: Vec<&'static SupportedProtocolVersion>,
    /// Deviations from the configuration, as text for the log: names that Go knows and that are
    /// insecure are ignored.
    pub notes: Vec<String>,
}

impl TlsSettings {
    /// Reads `tlsMinVersion` and `tlsCipherSuites` in the names of Go, and `tlsCurvePreferences` in
    /// the numbers of IANA. Empty means the defaults. Suites of TLS 1.3 can't be chosen.
    ///
    /// # Errors
    /// A name is unknown, or none of the named ones is supported.
    pub fn new(
        min_version: &str,
        cipher_suites: &[String],
        curves: &[u16],
    ) -> Result<Self, TlsSettingsError> {
        let mut notes = Vec::new();
        let mut versions = match min_version {
            "" | "VersionTLS12" => vec![&TLS13, &TLS12],
            "VersionTLS13" => vec![&TLS13],
            "VersionTLS10" | "VersionTLS11" => {
                notes.push(format!(
                    "tlsMinVersion is {min_version}; versions before TLS 1.2 are not spoken"
                ));
                vec![&TLS13, &TLS12]
            }
            other => return Err(TlsSettingsError::Version(other.to_owned())),
        };
        let mut provider = aws_lc_rs::default_provider();
        let suites = Suites::choose(&provider.cipher_suites, cipher_suites)?;
        if !suites.left_out.is_empty() {
            notes.push(format!(
                "of tlsCipherSuites these are not spoken, as they are weak: {}",
                suites.left_out.join(", ")
            ));
        }
        if !suites.any_of_tls12 && versions.len() > 1 {
            notes.push(
                "tlsCipherSuites has no suite of TLS 1.2 that is spoken: only TLS 1.3 is left"
                    .to_owned(),
            );
            versions = vec![&TLS13];
        }
        provider.cipher_suites = suites.chosen;
        if !curves.is_empty() {
            let known: Vec<u16> = provider
                .kx_groups
                .iter()
                .map(|group| group.name().into())
                .collect();
            let of = |number: &u16| {
                let mut groups = provider.kx_groups.iter();
                groups
                    .find(|group| u16::from(group.name()) == *number)
                    .copied()
            };
            let chosen: Vec<_> = curves.iter().filter_map(of).collect();
            if chosen.is_empty() {
                return Err(TlsSettingsError::Curves(curves.to_vec(), known));
            }
            if chosen.len() < curves.len() {
                notes.push(format!("of tlsCurvePreferences only {known:?} are spoken"));
            }
            provider.kx_groups = chosen;
        }
        Ok(Self {
            provider: Arc::new(provider),
            versions,
            notes,
        })
    }
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self::new("", &[], &[]).expect("the defaults are supported")
    }
}

/// Builds the configuration of the next handshake.
pub(super) struct TlsConfigs {
    settings: TlsSettings,
    certificate: Arc<dyn ResolvesServerCert>,
    /// The last one built.
    made: Mutex<Option<Made>>,
}

/// A configuration, and the authorities that it is for.
struct Made {
    bundle: Option<Arc<Bundle>>,
    config: Arc<ServerConfig>,
}

impl TlsConfigs {
    pub(super) fn new(settings: TlsSettings, certificate: Arc<dyn ResolvesServerCert>) -> Self {
        Self {
            settings,
            certificate,
            made: Mutex::default(),
        }
    }

    /// The configuration for a handshake that requests certificates of these authorities.
    pub(super) fn get(&self, bundle: Option<&Arc<Bundle>>) -> Arc<ServerConfig> {
        let mut made = self.made.lock();
        if let Some(made) = &*made
            && made.bundle.as_ref().map(Arc::as_ptr) == bundle.map(Arc::as_ptr)
        {
            return Arc::clone(&made.config);
        }
        let config = Arc::new(self.make(bundle));
        *made = Some(Made {
            bundle: bundle.cloned(),
            config: Arc::clone(&config),
        });
        config
    }

    fn make(&self, bundle: Option<&Arc<Bundle>>) -> ServerConfig {
        let provider = Arc::clone(&self.settings.provider);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.settings.versions)
            .expect("each version has a cipher suite: this was seen to when they were chosen");
        let builder = match bundle {
            Some(bundle) => builder
                .with_client_cert_verifier(Arc::new(AskForAny::new(bundle.names(), &provider))),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::clone(&self.certificate));
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        // A resumed session would carry over a certificate from an earlier connection; clients of
        // this port keep their connections anyway.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(min: &str, suites: &[&str]) -> Result<TlsSettings, TlsSettingsError> {
        let suites: Vec<String> = suites.iter().map(ToString::to_string).collect();
        TlsSettings::new(min, &suites, &[])
    }

    #[test]
    fn versions_are_those_of_the_setting_and_never_weak_ones() {
        assert_eq!(settings("", &[]).unwrap().versions.len(), 2);
        assert_eq!(settings("VersionTLS12", &[]).unwrap().versions.len(), 2);
        assert_eq!(settings("VersionTLS13", &[]).unwrap().versions, [&TLS13]);
        let old = settings("VersionTLS10", &[]).unwrap();
        assert_eq!((old.versions.len(), old.notes.len()), (2, 1));
        assert_eq!(
            settings("TLS1.2", &[]).unwrap_err().to_string(),
            "tlsMinVersion: unknown tls version \"TLS1.2\"; use VersionTLS12 or VersionTLS13, or \
             leave it out"
        );
    }

    #[test]
    fn weak_suites_are_left_out_and_said() {
        let hardened = settings(
            "",
            &[
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
                "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                "TLS_RSA_WITH_AES_256_GCM_SHA384",
            ],
        )
        .unwrap();
        // Three of TLS 1.3 are always spoken.
        assert_eq!(hardened.provider.cipher_suites.len(), 5);
        assert_eq!(
            hardened.notes,
            [
                "of tlsCipherSuites these are not spoken, as they are weak: \
                 TLS_RSA_WITH_AES_256_GCM_SHA384"
            ]
        );
    }

    #[test]
    fn without_a_suite_of_tls_1_2_only_tls_1_3_is_left() {
        for suite in ["TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256"] {
            let settings = settings("", &[suite]).unwrap();
            assert_eq!(settings.versions, [&TLS13], "{suite}");
            assert!(!settings.notes.is_empty(), "{suite}");
        }
    }

    #[test]
    fn names_of_nothing_are_refused() {
        assert_eq!(
            settings("", &["TLS_BEST"]).unwrap_err().to_string(),
            "tlsCipherSuites: Cipher suite TLS_BEST not supported or doesn't exist"
        );
    }

    #[test]
    fn key_exchanges_are_chosen_by_number() {
        let curves = |curves: &[u16]| TlsSettings::new("", &[], curves);
        let chosen = curves(&[23, 29, 25]).unwrap();
        let names: Vec<u16> = chosen
            .provider
            .kx_groups
            .iter()
            .map(|group| group.name().into())
            .collect();
        assert_eq!(names, [23, 29]);
        assert_eq!(chosen.notes.len(), 1);
        assert!(curves(&[25]).is_err());
    }
}
