//! Authentication and authorization on the kubelet's port.

use crate::field::section;
use crate::go_duration;
use std::time::Duration;

section! {
    /// How a client of the kubelet's port is authenticated.
    pub struct Authentication {
        /// By client certificate.
        x509: X509Authentication = X509Authentication::default(), "x509", Unset, Works;
        /// By bearer token.
        webhook: WebhookAuthentication = WebhookAuthentication::default(), "webhook", Unset, Cluster;
        /// Of clients that are not authenticated.
        anonymous: AnonymousAuthentication = AnonymousAuthentication::default(), "anonymous", Unset, Works;
    }
}

section! {
    /// Authentication by client certificate.
    pub struct X509Authentication {
        /// File with the certificate authorities that are trusted for client certificates. Empty
        /// disables client certificates.
        client_ca_file: String = String::new(), "clientCAFile", Unset, Works;
    }
}

section! {
    /// Authentication by bearer token, which the API server reviews.
    pub struct WebhookAuthentication {
        /// Whether bearer tokens are accepted.
        enabled: bool = true, "enabled", Counts, Cluster;
        /// How long the API server's review of a token is cached.
        #[serde(with = "go_duration")]
        cache_ttl: Duration = Duration::from_secs(120), "cacheTTL", Unset, Cluster;
    }
}

section! {
    /// Clients that are not authenticated.
    pub struct AnonymousAuthentication {
        /// Whether clients that are not authenticated are accepted as `system:anonymous`.
        enabled: bool = false, "enabled", Counts, Works;
    }
}

section! {
    /// How a request is authorized.
    pub struct Authorization {
        /// `Webhook` asks the API server, `AlwaysAllow` allows every request that was authenticated or
        /// accepted as anonymous.
        mode: String = "Webhook".to_owned(), "mode", Unset, Works;
        /// How long responses of the API server are cached.
        webhook: WebhookAuthorization = WebhookAuthorization::default(), "webhook", Unset, Cluster;
    }
}

section! {
    /// How long responses of the API server are cached.
    pub struct WebhookAuthorization {
        /// How long the API server's permission is cached.
        #[serde(with = "go_duration")]
        cache_authorized_ttl: Duration = Duration::from_secs(300), "cacheAuthorizedTTL", Unset, Cluster;
        /// How long the API server's denial is cached.
        #[serde(with = "go_duration")]
        cache_unauthorized_ttl: Duration = Duration::from_secs(30), "cacheUnauthorizedTTL", Unset, Cluster;
    }
}
