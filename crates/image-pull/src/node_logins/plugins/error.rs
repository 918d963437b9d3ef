//! Errors of plugins.

use std::{io, process::ExitStatus, sync::Arc, time::Duration};

use rubelet_node_state::objects::ServiceAccountError;

/// An error of a plugin. No message quotes the plugin's response, which may contain a password.
/// Cloned for each pod that waits for the same call.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum PluginError {
    /// The program can't be started.
    #[error("failed to start the plugin: {0}")]
    Start(#[source] Arc<io::Error>),
    /// Its standard streams are missing.
    #[error("the plugin's standard streams are not available")]
    NoPipes,
    /// It did not exit in time.
    #[error("the plugin did not exit within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Its exit status can't be read.
    #[error("{0}")]
    Wait(#[source] Arc<io::Error>),
    /// It failed, and printed this to stderr.
    #[error("the plugin failed ({status}): {stderr}")]
    Failed { status: ExitStatus, stderr: String },
    /// Its output is not a response.
    #[error("the plugin's response is not a CredentialProviderResponse")]
    NotAResponse,
    /// It responded in another version than that of the request.
    #[error("apiVersion of the plugin's response is not {expected}, as requested")]
    ApiVersion { expected: String },
    /// Its `cacheKeyType` is unknown.
    #[error("cacheKeyType of the plugin's response is not Image, Registry or Global")]
    CacheKeyType,
    /// Its `cacheDuration` can't be parsed.
    #[error("cacheDuration of the plugin's response is not a duration")]
    CacheDuration,
    /// A token as a password is valid for one pod only.
    #[error(
        "the plugin returned the service account token itself as the password, which needs \
         cacheType: Token"
    )]
    TokenAsPassword,
    /// The pod's service account can't be read.
    #[error("failed to get service account: {0}")]
    ServiceAccount(#[source] ServiceAccountError),
    /// The API server issues no token.
    #[error("failed to get service account token: {0}")]
    Token(#[source] ServiceAccountError),
}
