//! logind as the service that announces shutdowns.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_base::ErrorChain;
use rubelet_host::logind::{Logind, LogindError, LogindSession};
use tracing::{info, warn};

use super::{DelayGuard, ShutdownService, ShutdownServiceError, ShutdownSession};

/// Shown by `systemd-inhibit --list`.
const WHO: &str = "rubelet";
const WHY: &str = "pods are terminated before the node shuts down";

/// logind of this machine.
#[derive(Debug)]
pub struct LogindShutdowns(pub Logind);

#[async_trait]
impl ShutdownService for LogindShutdowns {
    async fn connect(&self) -> Result<Box<dyn ShutdownSession>, ShutdownServiceError> {
        let session = self.0.connect().await.map_err(text)?;
        Ok(Box::new(Session(session)))
    }
}

struct Session(LogindSession);

#[async_trait]
impl ShutdownSession for Session {
    async fn is_shutting_down(&mut self) -> Result<bool, ShutdownServiceError> {
        self.0.is_shutting_down().await.map_err(text)
    }

    async fn delay(
        &mut self,
        period: Duration,
    ) -> Result<(DelayGuard, Duration), ShutdownServiceError> {
        let session = &mut self.0;
        let mut longest = session.longest_delay().await.map_err(text)?;
        if longest < period {
            info!(?longest, needed = ?period, "Raising InhibitDelayMaxSec of logind");
            match session.raise_longest_delay(period).await {
                Ok(raised) => longest = raised,
                // Less time is better than none.
                Err(error) => {
                    warn!(error = %ErrorChain(&error), "Cannot raise InhibitDelayMaxSec of logind");
                }
            }
        }
        let lock = session.delay(WHO, WHY).await.map_err(text)?;
        Ok((Box::new(lock), longest))
    }

    async fn changed(&mut self) -> Result<(), ShutdownServiceError> {
        self.0.next().await.map(drop).map_err(text)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn text(error: LogindError) -> ShutdownServiceError {
    ShutdownServiceError(ErrorChain(&error).to_string())
}
