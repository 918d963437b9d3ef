//! The API server decides who calls the kubelet API (port 10250), and what they may do: TokenReview
//! and SubjectAccessReview, with its answers cached for a while.
//!
//! | request | cached while positive | cached while negative |
//! |---|---|---|
//! | whose token is this | `authentication.webhook.cacheTTL` (2 min) | 10 s, and never longer than that |
//! | may this user do that | `authorization.webhook.cacheAuthorizedTTL` (5 min) | `cacheUnauthorizedTTL` (30 s) |
//!
//! Without an answer there is no access, and failures are not cached. The same request is sent
//! once, however many wait for it; a caller that stops waiting does not cancel it for the others.
//! Tokens are cached by their digest only.

mod access;
mod cache;
mod call;
#[cfg(test)]
mod tests;
mod tokens;

pub use self::{access::AccessReviews, tokens::TokenReviews};
