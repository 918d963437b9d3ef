//! Settings of a client that do not depend on the server.

use std::{fmt, process::Command, sync::Arc, time::Duration};

use crate::{
    clock::{self, WallClock},
    observer::{IgnoreRequests, RequestObserver},
};

/// Options of a client.
#[derive(Clone)]
pub struct ClientOptions {
    /// Requests a second that are allowed in the long run: `kubeAPIQPS`. Zero or less: any number.
    pub qps: f32,
    /// Requests that may be made at once after a quiet time: `kubeAPIBurst`.
    pub burst: u32,
    /// For a whole request, waiting for the rate limit and retries included. 30 s by default: the
    /// API server itself ends requests after 60 s, most of what is slower than half of that is
    /// lost, and by then the caller has something newer to send.
    pub request_timeout: Duration,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Called for each request.
    pub observer: Arc<dyn RequestObserver>,
    /// Used to check whether credentials have expired.
    pub clock: WallClock,
    /// Begin of the sequence that varies delays; random by default.
    pub seed: u64,
    /// Is given each credential plugin before it is started, to undo what is for this process alone.
    pub before_plugin: fn(&mut Command),
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            qps: 50.0,
            burst: 100,
            request_timeout: Duration::from_secs(30),
            user_agent: concat!("rubelet/", env!("CARGO_PKG_VERSION")).to_owned(),
            observer: Arc::new(IgnoreRequests),
            clock: clock::system(),
            seed: crate::jitter::random_seed(),
            before_plugin: |_| (),
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("qps", &self.qps)
            .field("burst", &self.burst)
            .field("request_timeout", &self.request_timeout)
            .field("user_agent", &self.user_agent)
            .finish_non_exhaustive()
    }
}
