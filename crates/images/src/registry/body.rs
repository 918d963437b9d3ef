//! The body of a response, as it arrives.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use rubelet_base::ErrorChain;
use tokio::time::{Instant, timeout};

use crate::{Limits, PullError, PullErrorKind};

/// Minimum progress in bytes: a server that sends one byte now and then would keep a pull running
/// forever.
const SOME: u64 = 64 * 1024;

/// The body of a response. Dropping it before its end closes the connection.
pub(crate) struct ResponseBody {
    incoming: Incoming,
    pace: DownloadPace,
    from: String,
}

/// The progress of a download. Only time spent waiting counts: unpacking may take long.
#[derive(Debug)]
struct DownloadPace {
    idle: Duration,
    /// Zero means no limit.
    progress: Duration,
    /// Time since the last progress.
    waited: Duration,
    /// Bytes since then.
    arrived: u64,
}

impl DownloadPace {
    fn new(limits: &Limits) -> Self {
        Self {
            idle: limits.idle,
            progress: limits.progress,
            waited: Duration::ZERO,
            arrived: 0,
        }
    }

    /// Timeout of the next bytes.
    fn patience(&self) -> Duration {
        match self.progress.is_zero() {
            true => self.idle,
            false => self.idle.min(self.progress.saturating_sub(self.waited)),
        }
    }

    /// Records bytes that arrived after such a time.
    fn note(&mut self, waited: Duration, bytes: usize) {
        self.waited += waited;
        self.arrived += bytes as u64;
        if self.arrived >= SOME {
            self.waited = Duration::ZERO;
            self.arrived = 0;
        }
    }

    /// The error if the next bytes take longer than [`Self::patience`].
    fn timeout_message(&self, from: &str) -> String {
        let idle = self.idle.as_secs();
        let progress = self.progress.as_secs();
        match self.patience() < self.idle {
            true => format!(
                "download from {from} is too slow: {} bytes in {progress} s",
                self.arrived
            ),
            false => format!("download from {from} stalled for {idle} s"),
        }
    }
}

impl ResponseBody {
    pub(super) fn new(incoming: Incoming, limits: &Limits, from: String) -> Self {
        Self {
            incoming,
            pace: DownloadPace::new(limits),
            from,
        }
    }

    /// Its length, if the server announced it.
    pub(super) fn announced(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, PullError> {
        let unavailable = |message| PullError::new(PullErrorKind::Unavailable, message);
        loop {
            let since = Instant::now();
            let frame = timeout(self.pace.patience(), self.incoming.frame()).await;
            let frame = frame.map_err(|_| unavailable(self.pace.timeout_message(&self.from)))?;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.pace.note(since.elapsed(), bytes.len());
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    let chain = ErrorChain(&error);
                    return Err(unavailable(format!(
                        "download from {} was interrupted: {chain}",
                        self.from
                    )));
                }
            }
        }
    }

    /// The whole body, if it is at most `most` bytes.
    pub(super) async fn all(mut self, most: u64, what: &str) -> Result<Bytes, PullError> {
        let too_large = || {
            let message = format!("the {what} from {} has more than {most} bytes", self.from);
            PullError::new(PullErrorKind::Refused, message)
        };
        let error = too_large();
        if self.announced().is_some_and(|length| length > most) {
            return Err(error);
        }
        let mut all = BytesMut::new();
        while let Some(bytes) = self.chunk().await? {
            if (all.len() + bytes.len()) as u64 > most {
                return Err(error);
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all.freeze())
    }

    /// The beginning of the body, ignoring errors.
    pub(super) async fn start(mut self, most: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while start.len() < most
            && let Ok(Some(bytes)) = self.chunk().await
        {
            start.extend_from_slice(&bytes[..bytes.len().min(most - start.len())]);
        }
        start
    }
}

#[cfg(test)]
mod tests;
