//! Authentication and authorization on the kubelet's port.

use crate::field::section;
use crate::go_duration;
use std::time::Duration;

section! {
    /// How a caller of the kubelet's port is recognised.
    pub struct Authentication {
        /// By client certificate.
        x509: X509Authentication = X509Authentication::default(), "x509", Unset, Works;
        /// By bearer token.
        webhook: WebhookAuthentication = WebhookAuthentication::default(), "webhook", Unset, Cluster;
        /// Not at all.
        anonymous: AnonymousAuthentication = AnonymousAuthentication::default(), "anonymous", Unset, Works;
    }
}

section! {
    /// Recognition by client certificate.
    pub struct X509Authentication {
        /// File with the authorities whose client certificates are trusted. Empty switches
        /// certificates off.
        client_ca_file: String = String::new(), "clientCAFile", Unset, Works;
    }
}

section! {
    /// Recognition by bearer token, which the API server reviews.
    pub struct WebhookAuthentication {
        /// Whether bearer tokens are accepted.
        enabled: bool = true, "enabled", Counts, Cluster;
        /// How long the API server's review of a token is kept.
        #[serde(with = "go_duration")]
        cache_ttl: Duration = Duration::from_secs(120), "cacheTTL", Unset, Cluster;
    }
}

section! {
    /// Callers that were not recognised.
    pub struct AnonymousAuthentication {
        /// Whether callers that were not recognised are let in as `system:anonymous`.
        enabled: bool = false, "enabled", Counts, Works;
    }
}

section! {
    /// What a recognised caller may do.
    pub struct Authorization {
        /// `Webhook` asks the API server, `AlwaysAllow` lets everybody do everything who was recognised
        /// or let in.
        mode: String = "Webhook".to_owned(), "mode", Unset, Works;
        /// How long answers of the API server are kept.
        webhook: WebhookAuthorization = WebhookAuthorization::default(), "webhook", Unset, Cluster;
    }
}

section! {
    /// How long answers of the API server are kept.
    pub struct WebhookAuthorization {
        /// How long the API server's yes is kept.
        #[serde(with = "go_duration")]
        cache_authorized_ttl: Duration = Duration::from_secs(300), "cacheAuthorizedTTL", Unset, Cluster;
        /// How long the API server's no is kept.
        #[serde(with = "go_duration")]
        cache_unauthorized_ttl: Duration = Duration::from_secs(30), "cacheUnauthorizedTTL", Unset, Cluster;
    }
}
