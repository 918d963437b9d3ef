//! The body of an answer, as it comes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use rubelet_base::ErrorChain;
use tokio::time::timeout;

use crate::{PullError, PullErrorKind};

/// The body of an answer. Dropped before its end, it closes its connection.
pub(crate) struct Body {
    incoming: Incoming,
    idle: Duration,
    from: String,
}

impl Body {
    pub(super) fn new(incoming: Incoming, idle: Duration, from: String) -> Self {
        Self {
            incoming,
            idle,
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
            let frame = timeout(self.idle, self.incoming.frame()).await;
            let frame = frame.map_err(|_| {
                let (from, idle) = (&self.from, self.idle.as_secs());
                unavailable(format!("the download from {from} stood still for {idle} s"))
            })?;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
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
