//! The body of an answer, as it comes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use rubelet_base::ErrorChain;
use tokio::time::{Instant, timeout};

use crate::{Limits, PullError, PullErrorKind};

/// As many bytes in the time for progress are some: a server that sends one now and then would keep a
/// pull for ever.
const SOME: u64 = 64 * 1024;

/// The body of an answer. Dropped before its end, it closes its connection.
pub(crate) struct Body {
    incoming: Incoming,
    pace: Pace,
    from: String,
}

/// How fast a download is. Only the time counts in which it is waited for: unpacking may take long.
#[derive(Debug)]
struct Pace {
    idle: Duration,
    /// Zero is for ever.
    progress: Duration,
    /// Since there was progress.
    waited: Duration,
    /// Bytes since then.
    arrived: u64,
}

impl Pace {
    fn new(limits: &Limits) -> Self {
        Self {
            idle: limits.idle,
            progress: limits.progress,
            waited: Duration::ZERO,
            arrived: 0,
        }
    }

    /// How long the next bytes may take.
    fn patience(&self) -> Duration {
        match self.progress.is_zero() {
            true => self.idle,
            false => self.idle.min(self.progress.saturating_sub(self.waited)),
        }
    }

    /// Notes bytes that came after such a time.
    fn note(&mut self, waited: Duration, bytes: usize) {
        self.waited += waited;
        self.arrived += bytes as u64;
        if self.arrived >= SOME {
            self.waited = Duration::ZERO;
            self.arrived = 0;
        }
    }

    /// What is wrong when the next bytes took longer than [`Self::patience`].
    fn complaint(&self, from: &str) -> String {
        let idle = self.idle.as_secs();
        let progress = self.progress.as_secs();
        match self.patience() < self.idle {
            true => format!(
                "the download from {from} got on by only {} bytes in {progress} s",
                self.arrived
            ),
            false => format!("the download from {from} stood still for {idle} s"),
        }
    }
}

impl Body {
    pub(super) fn new(incoming: Incoming, limits: &Limits, from: String) -> Self {
        Self {
            incoming,
            pace: Pace::new(limits),
            from,
        }
    }

    /// How long it is, if the server said so.
    pub(super) fn announced(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, PullError> {
        let unavailable = |message| PullError::new(PullErrorKind::Unavailable, message);
        loop {
            let since = Instant::now();
            let frame = timeout(self.pace.patience(), self.incoming.frame()).await;
            let frame = frame.map_err(|_| unavailable(self.pace.complaint(&self.from)))?;
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
                        "the download from {} was cut off: {chain}",
                        self.from
                    )));
                }
            }
        }
    }

    /// All of it, if it is no more than `most` bytes.
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

    /// The beginning of it, whatever happens then.
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
mod tests {
    use super::*;

    fn pace(idle: u64, progress: u64) -> Pace {
        Pace::new(&Limits {
            idle: Duration::from_secs(idle),
            progress: Duration::from_secs(progress),
            ..Limits::default()
        })
    }

    #[test]
    fn a_server_that_sends_a_byte_now_and_then_is_not_waited_for_for_ever() {
        let mut pace = pace(60, 300);
        for _ in 0..5 {
            assert!(pace.patience() > Duration::from_secs(50));
            pace.note(Duration::from_secs(50), 1);
        }
        assert_eq!(pace.patience(), Duration::from_secs(50));
        pace.note(Duration::from_secs(50), 1);
        assert_eq!(pace.patience(), Duration::ZERO);
        assert_eq!(
            pace.complaint("r.test"),
            "the download from r.test got on by only 6 bytes in 300 s"
        );
    }

    #[test]
    fn a_slow_download_goes_on_as_long_as_something_comes() {
        let mut pace = pace(60, 300);
        for _ in 0..1000 {
            assert_eq!(pace.patience(), Duration::from_secs(60));
            pace.note(Duration::from_secs(59), 20_000);
            pace.note(Duration::from_secs(59), 20_000);
            pace.note(Duration::from_secs(59), 20_000);
            pace.note(Duration::from_secs(59), 20_000);
        }
        let complaint = pace.complaint("r.test");
        assert_eq!(complaint, "the download from r.test stood still for 60 s");
    }

    #[test]
    fn without_a_time_for_progress_only_standstill_counts() {
        let mut pace = pace(60, 0);
        pace.note(Duration::from_secs(100_000), 1);
        assert_eq!(pace.patience(), Duration::from_secs(60));
    }
}
