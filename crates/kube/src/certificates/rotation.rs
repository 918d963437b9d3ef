//! Rotates one certificate: waits until it is due, requests the next one, stores it and installs it.

use super::key::CertificatePurpose;
use super::notice::{CertificateHooks, CertificateNotice};
use super::pair::Certificate;
use super::rules::{
    self, CertificateTemplate, NextRenewal, RenewalReason, is_valid, issued_unusable,
    longest_pause, rotation_by_arrival,
};
use super::signing::{CsrSubmission, SigningError};
use super::store::{PairStore, StoreError};
use crate::clock::WallClock;
use crate::kubeconfig::KubeconfigError;
use crate::{Client, ClientError};
use jiff::Timestamp;
use rubelet_base::{Backoff, ErrorChain};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;

/// Longest sleep between two reads of the wall clock: the clock may be set, and the machine may sleep.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// Makes the client of a bootstrap kubeconfig, which is read again each time: its token may have been replaced.
pub(super) type Bootstrap = Box<dyn Fn() -> Result<Client, CsrClientError> + Send + Sync>;

/// Why no client can create a CertificateSigningRequest.
#[derive(Debug, thiserror::Error)]
pub(super) enum CsrClientError {
    /// The bootstrap kubeconfig can't be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The bootstrap kubeconfig leads to no client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The node has none, and there is no bootstrap kubeconfig.
    #[error("no client for certificate requests")]
    NoClient,
}

/// The clients that can create a CertificateSigningRequest.
pub(super) struct CsrClients {
    /// The node's own, which shows its certificate.
    pub(super) own: Option<Client>,
    /// For the time without a valid certificate.
    pub(super) bootstrap: Option<Bootstrap>,
}

impl CsrClients {
    fn client(&self, has_certificate: bool) -> Result<Client, CsrClientError> {
        match (&self.own, &self.bootstrap) {
            (Some(own), None) => Ok(own.clone()),
            (Some(own), _) if has_certificate => Ok(own.clone()),
            (_, Some(bootstrap)) => bootstrap(),
            (None, None) => Err(CsrClientError::NoClient),
        }
    }
}

/// Why a rotation failed.
#[derive(Debug, thiserror::Error)]
enum RotationError {
    #[error(transparent)]
    Signing(#[from] SigningError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Client(#[from] CsrClientError),
}

/// One certificate, and all that is needed to replace it.
pub(super) struct Rotation {
    pub(super) clients: CsrClients,
    pub(super) store: PairStore,
    pub(super) purpose: CertificatePurpose,
    /// The desired subject and names; `None` until they are known.
    pub(super) wanted: watch::Receiver<Option<CertificateTemplate>>,
    pub(super) clock: WallClock,
    pub(super) notice: CertificateNotice,
    pub(super) hooks: CertificateHooks,
    /// Puts a certificate to use.
    pub(super) install: Box<dyn Fn(&Certificate) + Send + Sync>,
    pub(super) current: Option<Certificate>,
    /// When the current one came from the cluster, if it did so in this process.
    pub(super) arrived: Option<Timestamp>,
    /// Whether the current one is not the node's own, and is replaced at once.
    pub(super) foreign: bool,
}

/// Delay after a failure.
#[derive(Debug)]
struct RetryDelays {
    /// The API server could not be reached.
    unavailable: Backoff,
    /// The API server refused, or the disk failed.
    refused: Backoff,
    /// It issued something other than the request: again, but not at once.
    useless: Backoff,
}

impl RetryDelays {
    const fn new() -> Self {
        let seconds = Duration::from_secs;
        Self {
            unavailable: Backoff::new(seconds(2), seconds(32)),
            refused: Backoff::new(seconds(30), seconds(900)),
            useless: Backoff::new(rules::MIN_PAUSE, MAX_SLEEP),
        }
    }
}

impl Rotation {
    /// Never ends. May be dropped at any time: a request that was made is found again.
    pub(super) async fn run(mut self) -> Infallible {
        let mut pauses = RetryDelays::new();
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            let Some(wanted) = wanted else {
                if self.current.is_none() {
                    self.notice.say(
                        "waiting for the node's addresses before requesting a serving certificate",
                    );
                }
                changed(&mut self.wanted).await;
                continue;
            };
            let pause = match self.due(&wanted) {
                NextRenewal::At(at) => {
                    self.notice.clear();
                    let left = at.duration_since((self.clock)());
                    Duration::try_from(left).unwrap_or_default().min(MAX_SLEEP)
                }
                NextRenewal::Now(why) => {
                    let mut others = self.wanted.clone();
                    tokio::select! {
                        pause = self.attempt(&wanted, &why, &mut pauses) => pause,
                        () = changed(&mut others) => continue,
                    }
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = changed(&mut self.wanted) => {}
            }
        }
    }

    /// Ends when there is a certificate.
    pub(super) async fn first(&mut self, wanted: &CertificateTemplate) {
        let mut pauses = RetryDelays::new();
        while self.current.is_none() {
            let pause = self
                .attempt(wanted, &RenewalReason::Missing, &mut pauses)
                .await;
            if self.current.is_none() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    fn due(&self, wanted: &CertificateTemplate) -> NextRenewal {
        if self.foreign {
            return NextRenewal::Now(RenewalReason::Foreign);
        }
        let (leaf, jitter) = match &self.current {
            Some(current) => (Some(current.leaf()), rules::jitter(current.der())),
            None => (None, 0.0),
        };
        let now = (self.clock)();
        match (rules::due(leaf, wanted, jitter, now), leaf, self.arrived) {
            (NextRenewal::At(_), Some(leaf), Some(arrived)) => {
                match rotation_by_arrival(leaf, jitter, arrived) {
                    at if at <= now => NextRenewal::Now(RenewalReason::Age),
                    at => NextRenewal::At(at),
                }
            }
            (due, ..) => due,
        }
    }

    /// Tries once, and returns how long to wait then.
    async fn attempt(
        &mut self,
        wanted: &CertificateTemplate,
        why: &RenewalReason,
        pauses: &mut RetryDelays,
    ) -> Duration {
        match self.replace(wanted, why).await {
            Ok(()) => {
                pauses.unavailable.reset();
                pauses.refused.reset();
                match self.due(wanted) {
                    NextRenewal::At(_) => {
                        self.notice.clear();
                        pauses.useless.reset();
                        Duration::ZERO
                    }
                    NextRenewal::Now(why) => {
                        let pause = pauses.useless.advance();
                        let Some(current) = &self.current else {
                            return pause;
                        };
                        let line = issued_unusable(&why, current.expires(), (self.clock)());
                        self.notice.trouble(&line);
                        pause.min(longest_pause(current.leaf()))
                    }
                }
            }
            Err(error) => {
                (self.hooks.failed)();
                self.notice.trouble(&ErrorChain(&error).to_string());
                match error {
                    RotationError::Signing(SigningError::Unavailable { .. }) => {
                        pauses.unavailable.advance()
                    }
                    _ => pauses.refused.advance(),
                }
            }
        }
    }

    /// Requests one certificate and puts it to use.
    async fn replace(
        &mut self,
        wanted: &CertificateTemplate,
        why: &RenewalReason,
    ) -> Result<(), RotationError> {
        if let Some(found) = self.replaced_on_disk(wanted) {
            self.put(&found);
            return Ok(());
        }
        tracing::debug!("Requesting a certificate for {}: {why}", wanted.common_name);
        let now = (self.clock)();
        let valid = |current: &Certificate| is_valid(current.expires(), now);
        let client = self
            .clients
            .client(self.current.as_ref().is_some_and(valid))?;
        let key = self.store.pending_key()?;
        let asking = CsrSubmission {
            client: &client,
            key: &key,
            wanted,
            purpose: self.purpose,
            notice: &self.notice,
        };
        let pair = match asking.obtain().await {
            Ok(pair) => pair,
            Err(error) => {
                if !matches!(error, SigningError::Unavailable { .. }) {
                    // The next attempt is a request of its own.
                    self.store.drop_pending_key()?;
                }
                return Err(error.into());
            }
        };
        self.store.update(&pair, (self.clock)())?;
        if let Err(error) = self.store.drop_pending_key() {
            tracing::warn!("{}", ErrorChain(&error));
        }
        self.put(pair.certificate());
        self.arrived = Some((self.clock)());
        Ok(())
    }

    /// A newer certificate that another process has put into the directory.
    fn replaced_on_disk(&self, wanted: &CertificateTemplate) -> Option<Certificate> {
        let found = self.store.current().ok()??.certificate().clone();
        let is_same = |current: &Certificate| current.der() == found.der();
        let jitter = rules::jitter(found.der());
        let due = rules::due(Some(found.leaf()), wanted, jitter, (self.clock)());
        let is_better =
            matches!(due, NextRenewal::At(_)) && !self.current.as_ref().is_some_and(is_same);
        is_better.then_some(found)
    }

    fn put(&mut self, new: &Certificate) {
        (self.install)(new);
        let until = new.expires();
        tracing::info!(
            "New certificate for {}, valid until {until}",
            new.leaf().common_name
        );
        if let Some(old) = self.current.replace(new.clone()) {
            (self.hooks.rotated)(age(&old, (self.clock)()));
        }
        self.foreign = false;
        self.arrived = None;
    }
}

fn age(old: &Certificate, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(old.leaf().not_before)).unwrap_or_default()
}

/// Waits for another value; forever where none can come.
async fn changed(wanted: &mut watch::Receiver<Option<CertificateTemplate>>) {
    if wanted.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
