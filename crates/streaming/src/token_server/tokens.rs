//! One-time tokens.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::time::Instant;

use super::StreamingRequest;

/// Lifetime of a token.
const LIFETIME: Duration = Duration::from_secs(60);

/// Maximum number of unused tokens, as in upstream.
const MOST: usize = 1000;

/// Bytes of a token: it can't be guessed.
const LENGTH: usize = 16;

/// Why no token was issued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("maximum number of in-flight requests exceeded")]
    TooMany,
    #[error("the system has no random numbers: {0}")]
    Random(String),
}

/// Tokens that are not used yet.
#[derive(Default)]
pub(super) struct Tokens {
    requests: HashMap<String, StreamingRequest>,
    /// When each expires, the oldest first; some are used by then.
    expiry: VecDeque<(Instant, String)>,
}

impl Tokens {
    /// A token for a request.
    pub(super) fn insert(
        &mut self,
        request: StreamingRequest,
        now: Instant,
    ) -> Result<String, TokenError> {
        self.expire(now);
        if self.requests.len() >= MOST {
            return Err(TokenError::TooMany);
        }
        let mut bytes = [0; LENGTH];
        let filled = getrandom(&mut bytes, GetRandomFlags::empty());
        let filled = filled.map_err(|error| TokenError::Random(error.to_string()))?;
        if filled != LENGTH {
            return Err(TokenError::Random("too few bytes".to_owned()));
        }
        let token = BASE64_URL_SAFE_NO_PAD.encode(bytes);
        self.expiry.push_back((now + LIFETIME, token.clone()));
        self.requests.insert(token.clone(), request);
        Ok(token)
    }

    /// The request of a token that was not used and has not expired.
    pub(super) fn take(&mut self, token: &str, now: Instant) -> Option<StreamingRequest> {
        self.expire(now);
        self.requests.remove(token)
    }

    fn expire(&mut self, now: Instant) {
        while let Some((until, token)) = self.expiry.front() {
            let is_used = !self.requests.contains_key(token);
            if *until > now && !is_used {
                return;
            }
            self.requests.remove(token);
            self.expiry.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use rubelet_cri::v1;

    use super::*;

    fn request(port: i32) -> StreamingRequest {
        StreamingRequest::PortForward(v1::PortForwardRequest {
            port: vec![port],
            ..Default::default()
        })
    }

    #[test]
    fn a_token_is_good_once_and_for_a_minute() {
        let (mut tokens, now) = (Tokens::default(), Instant::now());
        let first = tokens.insert(request(1), now).unwrap();
        let second = tokens.insert(request(2), now).unwrap();
        assert_ne!(first, second);
        assert_eq!(tokens.take("guessed", now), None);
        assert_eq!(tokens.take(&second, now), Some(request(2)));
        assert_eq!(tokens.take(&second, now), None);
        assert_eq!(tokens.take(&first, now + LIFETIME), None);
    }

    #[test]
    fn tokens_that_nobody_uses_are_bounded() {
        let (mut tokens, now) = (Tokens::default(), Instant::now());
        for port in 0..1000 {
            tokens.insert(request(port), now).unwrap();
        }
        assert_eq!(tokens.insert(request(0), now), Err(TokenError::TooMany));
        assert!(tokens.insert(request(0), now + LIFETIME).is_ok());
        assert_eq!((tokens.requests.len(), tokens.expiry.len()), (1, 1));
    }
}
