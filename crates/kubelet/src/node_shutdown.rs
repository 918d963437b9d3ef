//! Graceful shutdown of the node: delays a shutdown of the machine until its pods have ended, group by
//! group.
//!
//! Decided in [`rubelet_node_plan::node_shutdown`]. The task follows a level: whether the machine is
//! being shut down, which it asks again after each break of the connection.

mod logind;
mod pods;
mod record;

use std::{any::Any, future::pending, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_base::Backoff;
use rubelet_node_plan::node_shutdown::{CANCELLED, DETECTED, SHUTDOWN, ShutdownPolicy};
use rubelet_node_state::{
    events::{EventType, Subject},
    shutdown_state::ShutdownState,
};
use tokio::{sync::watch, time::sleep};
use tracing::{info, warn};

pub use self::logind::LogindShutdowns;
use crate::pod_task::PodContext;

/// First and longest pause before the service is connected again.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

/// Why the service can't be used, in words for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShutdownServiceError(pub String);

/// What delays a shutdown until it is dropped.
pub type DelayGuard = Box<dyn Any + Send>;

/// The service that announces shutdowns of the machine, and lets them be delayed.
#[async_trait]
pub trait ShutdownService: Send + Sync + 'static {
    /// Connects.
    ///
    /// # Errors
    /// Why the service can't be used, for the log.
    async fn connect(&self) -> Result<Box<dyn ShutdownSession>, ShutdownServiceError>;
}

/// A connection to that service.
#[async_trait]
pub trait ShutdownSession: Send {
    /// True if a shutdown has begun.
    ///
    /// # Errors
    /// The connection is lost, for the log.
    async fn is_shutting_down(&mut self) -> Result<bool, ShutdownServiceError>;

    /// Delays the next shutdown by up to `period`. Returns how long the service will wait at most,
    /// which may be less.
    ///
    /// # Errors
    /// It refuses, or the connection is lost, for the log.
    async fn delay(
        &mut self,
        period: Duration,
    ) -> Result<(DelayGuard, Duration), ShutdownServiceError>;

    /// Waits until a shutdown begins or is cancelled, or the service was restarted: then
    /// [`Self::is_shutting_down`] says more. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection is lost, for the log.
    async fn changed(&mut self) -> Result<(), ShutdownServiceError>;
}

/// Settings of graceful shutdowns.
#[derive(Clone)]
pub struct ShutdownSettings {
    /// How long pods have.
    pub policy: ShutdownPolicy,
    /// Announces shutdowns.
    pub service: Arc<dyn ShutdownService>,
    /// Where the times of the last shutdown are kept, for the metrics.
    pub record: PathBuf,
}

/// The task of graceful shutdowns.
pub(crate) struct NodeShutdown {
    pub(crate) settings: ShutdownSettings,
    pub(crate) context: Arc<PodContext>,
    pub(crate) node_name: Arc<str>,
    /// Where the state is published.
    pub(crate) state: watch::Sender<ShutdownState>,
}

/// The end of the pods of the node.
type Ending<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl NodeShutdown {
    /// Follows the service, for ever.
    pub(crate) async fn run(self) {
        self.restore_metrics().await;
        let mut backoff = Backoff::new(PAUSE_FIRST, PAUSE_LONGEST);
        let mut said = String::new();
        loop {
            let lost = match self.settings.service.connect().await {
                Ok(session) => {
                    backoff.reset();
                    said.clear();
                    self.follow(session).await
                }
                Err(error) => error,
            }
            .0;
            // Pods that an earlier shutdown has ended may run again.
            self.state.send_if_modified(|state| {
                let was_unknown = *state == ShutdownState::Unknown;
                if was_unknown {
                    *state = ShutdownState::Running;
                }
                was_unknown
            });
            if lost != said {
                warn!(
                    error = lost,
                    "shutdownGracePeriod has no effect as long as logind can't be used: a shutdown of this \
                     machine would not wait for pods"
                );
                said = lost;
            }
            sleep(backoff.advance()).await;
        }
    }

    /// Follows one connection until it is lost. Returns the reason.
    async fn follow(&self, mut session: Box<dyn ShutdownSession>) -> ShutdownServiceError {
        let mut guard: Option<DelayGuard> = None;
        let mut ending: Option<Ending<'_>> = None;
        loop {
            let begins = match session.is_shutting_down().await {
                Ok(begins) => begins,
                Err(lost) => return self.lost(lost, ending).await,
            };
            if !begins {
                // First: what has begun to end a pod completes in the pod's own task.
                ending = None;
                self.publish(false);
                // Also if there is one: it may be of an earlier process of the service.
                match self.delay(&mut *session).await {
                    Ok(taken) => drop(guard.replace(taken)),
                    Err(lost) => return lost,
                }
            } else if self.publish(true) {
                ending = Some(Box::pin(self.end_pods()));
            }
            loop {
                // Cancel safety: `ending` is kept; sessions lose nothing.
                tokio::select! {
                    changed = session.changed() => match changed {
                        Ok(()) => break,
                        Err(lost) => return self.lost(lost, ending).await,
                    },
                    () = end(&mut ending) => {
                        ending = None;
                        drop(guard.take());
                        info!("All pods have ended, or their time has: the machine may shut down");
                    }
                }
            }
        }
    }

    /// Delays the next shutdown.
    async fn delay(
        &self,
        session: &mut dyn ShutdownSession,
    ) -> Result<DelayGuard, ShutdownServiceError> {
        let needed = self.settings.policy.period();
        let (guard, longest) = session.delay(needed).await?;
        if longest < needed {
            warn!(
                ?needed,
                ?longest,
                "logind delays a shutdown for less time than shutdownGracePeriod: raise InhibitDelayMaxSec in \
                 /etc/systemd/logind.conf and its drop-in files"
            );
        } else {
            info!(?needed, "A shutdown of this machine waits for pods");
        }
        Ok(guard)
    }

    /// The connection is lost: pods that are ending do not wait for the next one.
    async fn lost(
        &self,
        why: ShutdownServiceError,
        mut ending: Option<Ending<'_>>,
    ) -> ShutdownServiceError {
        if ending.is_some() {
            end(&mut ending).await;
        }
        why
    }

    /// Publishes whether the node shuts down. Returns true if that is new.
    fn publish(&self, begins: bool) -> bool {
        let state = match begins {
            true => ShutdownState::ShuttingDown,
            false => ShutdownState::Running,
        };
        let before = self.state.send_replace(state);
        let message = match (before, state) {
            (before, state) if before == state => return false,
            (_, ShutdownState::ShuttingDown) => DETECTED,
            (ShutdownState::ShuttingDown, _) => CANCELLED,
            _ => return true,
        };
        info!("{message}");
        let node = Subject::Node((&*self.node_name).into());
        let recorder = &self.context.recorder;
        recorder.record(node, EventType::Normal, SHUTDOWN, message);
        true
    }
}

/// Resolves when the pods have ended; never if none are ending.
async fn end(ending: &mut Option<Ending<'_>>) {
    match ending {
        Some(ending) => ending.await,
        None => pending().await,
    }
}
