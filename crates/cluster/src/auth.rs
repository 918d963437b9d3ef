//! The API server judges who asks the node's port, and what they may: TokenReview and
//! SubjectAccessReview, with what it said remembered for a while.
//!
//! | question | remembered while true | remembered while false |
//! |---|---|---|
//! | whose token is this | `authentication.webhook.cacheTTL` (2 min) | 10 s, and never longer than that |
//! | may this user do that | `authorization.webhook.cacheAuthorizedTTL` (5 min) | `cacheUnauthorizedTTL` (30 s) |
//!
//! Without an answer there is no judgement, and so no access: nothing is remembered of a failure.
//! The same question is asked once, however many wait for it; one who stops waiting does not spoil
//! it for the others. Tokens are remembered by their digest only.

mod access;
mod cache;
mod call;
#[cfg(test)]
mod tests;
mod tokens;

pub use self::{access::AccessReviews, tokens::TokenReviews};
