//! A service account token that is kept for a pod.

use std::time::Duration;

use jiff::Timestamp;
use rubelet_api::pod::Pod;
use tokio::time::Instant;

use super::{
    object_refs::TokenRequest,
    records::HeldToken,
    token_rules::{refresh_at, spread_of},
};

/// A token that is kept.
pub(super) struct TrackedToken {
    pub(super) token: HeldToken,
    /// The time at which it must be refreshed.
    pub(super) refresh_at: Timestamp,
    /// The time of the last attempt to refresh it, or of the last notification of the pod.
    pub(super) tried_at: Option<Instant>,
    /// The API server was unreachable for a new one.
    pub(super) unconfirmed: bool,
}

impl TrackedToken {
    pub(super) fn new(pod: &Pod, request: &TokenRequest, token: HeldToken) -> Self {
        let spread = spread_of(&format!("{}{}", pod.uid, request.audience));
        let lifetime = token.seconds.map(Duration::from_secs);
        Self {
            refresh_at: refresh_at(token.expires_at, lifetime, spread),
            token,
            tried_at: None,
            unconfirmed: false,
        }
    }
}
