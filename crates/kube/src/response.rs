//! Reading an answer whole, within bounds.

use std::time::Duration;

use http::{HeaderMap, header};
use tokio::time::{Instant, timeout_at};

use crate::{
    error::{ApiError, BodyError},
    transport::ResponseBody,
};

/// An object is at most 3 MiB on the wire; lists that are no pages are a few of them.
pub(crate) const MAX_OBJECT: usize = 16 * 1024 * 1024;
/// A page of a list.
pub(crate) const MAX_PAGE: usize = 64 * 1024 * 1024;
/// Maximum length of an error response that is read.
pub(crate) const MAX_REFUSAL: usize = 64 * 1024;

/// Reads a body that may have `limit` bytes.
pub(crate) async fn whole(
    mut body: ResponseBody,
    limit: usize,
    deadline: Instant,
) -> Result<Vec<u8>, ApiError> {
    let too_large = || ApiError::Body(BodyError::TooLarge(limit / 1024 / 1024));
    let announced = body.announced().unwrap_or(0);
    let announced = usize::try_from(announced)
        .ok()
        .filter(|length| *length <= limit);
    let mut bytes = Vec::with_capacity(announced.ok_or_else(too_large)?);
    loop {
        let chunk = timeout_at(deadline, body.chunk()).await;
        match chunk.map_err(|_| ApiError::TimedOut)? {
            None => return Ok(bytes),
            Some(Err(error)) => return Err(ApiError::Body(BodyError::Broken(error))),
            Some(Ok(chunk)) if bytes.len() + chunk.len() > limit => return Err(too_large()),
            Some(Ok(chunk)) => bytes.extend_from_slice(&chunk),
        }
    }
}

/// The beginning of a refusal's body; what can't be read is left out.
pub(crate) async fn start(mut body: ResponseBody, deadline: Instant) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_REFUSAL {
        match timeout_at(deadline, body.chunk()).await {
            Ok(Some(Ok(chunk))) => bytes.extend_from_slice(&chunk),
            _ => break,
        }
    }
    bytes
}

/// `Retry-After` in seconds; dates are not used by API servers.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    let seconds: u64 = seconds.trim().parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| !wait.is_zero())
}
