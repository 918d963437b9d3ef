//! A manifest URL, polled at intervals.

mod fetch;
mod redirect;
mod target;

use http::HeaderMap;
use rubelet_api::pod::PodSource;
use rubelet_base::ErrorChain;
use tokio::{
    sync::mpsc,
    time::{Duration, sleep},
};

pub use fetch::Roots;
pub use target::TargetError;

use crate::{
    state::{Content, Observation},
    status::{Problem, Reason},
};
use fetch::{FetchResult, Fetcher};
use target::Target;

/// A URL to fetch.
pub(crate) struct UrlSource {
    origin: Box<str>,
    fetcher: Fetcher,
}

impl UrlSource {
    /// Validates the URL without fetching it.
    pub(crate) fn new(url: &str, headers: HeaderMap, roots: Roots) -> Result<Self, TargetError> {
        let target = Target::parse(url)?;
        let origin = target.shown().into();
        Ok(Self {
            origin,
            fetcher: Fetcher::new(target, headers, roots),
        })
    }

    /// Polls until the receiver is dropped, and sends the result of each poll.
    pub(crate) async fn watch(mut self, every: Duration, out: mpsc::Sender<Observation>) {
        let mut failures = Failures::default();
        loop {
            let observation = self.poll(&mut failures).await;
            if out.send(observation).await.is_err() {
                return;
            }
            sleep(every).await;
        }
    }

    async fn poll(&mut self, failures: &mut Failures) -> Observation {
        let origin = self.origin.clone();
        let content = match self.fetcher.fetch().await {
            Ok(FetchResult::Body(body)) => Content::Bytes(body.into()),
            Ok(FetchResult::NotModified) => Content::Unchanged,
            Err(error) => {
                let message = ErrorChain(&error).to_string();
                failures.failed(&origin, &message);
                let problem = Problem::whole(Reason::Unreachable, message);
                return Observation::Failed {
                    source: PodSource::Http,
                    origin,
                    problem,
                };
            }
        };
        failures.succeeded(&origin);
        let manifests = vec![(origin, content)];
        Observation::Scanned {
            source: PodSource::Http,
            single: true,
            manifests,
        }
    }
}

/// Counts failures to limit their log level: a server that is down for a day must not flood the
/// log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failures(u32);

/// The log level of one failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureLog {
    Warning,
    LastWarning,
    Quiet,
}

impl Failures {
    const MAX_WARNINGS: u32 = 3;

    fn count(&mut self) -> FailureLog {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            ..Self::MAX_WARNINGS => FailureLog::Warning,
            Self::MAX_WARNINGS => FailureLog::LastWarning,
            _ => FailureLog::Quiet,
        }
    }

    fn failed(&mut self, url: &str, error: &str) {
        match self.count() {
            FailureLog::Warning => tracing::warn!(url, error, "Cannot read the manifest URL"),
            FailureLog::LastWarning => tracing::warn!(
                url,
                error,
                "Cannot read the manifest URL; further failures are logged at debug level only"
            ),
            FailureLog::Quiet => tracing::debug!(url, error, "Cannot read the manifest URL"),
        }
    }

    fn succeeded(&mut self, url: &str) {
        if std::mem::take(&mut self.0) > 0 {
            tracing::info!(url, "Manifest URL is readable again");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
