//! Credentials of a client, read again when they change, expire or are rejected.

mod exec;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use jiff::Timestamp;
use rubelet_base::ErrorChain;
use tokio::{sync::Mutex, task::JoinHandle, time::Instant};

pub use self::exec::ExecPluginError;
use crate::{
    clock::WallClock,
    config::{Credential, ExecPlugin, IdentitySource},
    identity::ClientIdentity,
    secret::Secret,
};

/// Why there is nothing to identify with. No text in it is a secret.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialError {
    /// A file can't be used.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        problem: String,
    },
    /// A plugin gave no credentials.
    #[error("credential plugin {command:?}")]
    Exec {
        /// The program.
        command: String,
        /// The error. Shared: it is returned again until the plugin is started again.
        source: Arc<ExecPluginError>,
    },
    /// A token or password that no header can carry.
    #[error("invalid character in the {0}")]
    Characters(&'static str),
}

/// Files are read again after this time: upstream's for tokens.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Time before the expiry of a plugin's credentials at which they are renewed, in seconds.
const MARGIN: i64 = 10;
/// A plugin that failed is not started again before this time.
const PLUGIN_PAUSE: Duration = Duration::from_secs(5);

/// Credentials of one request.
#[derive(Debug)]
pub(crate) struct Authorization {
    pub(crate) header: Option<HeaderValue>,
    /// Identifies these credentials: other credentials have another number.
    pub(crate) generation: u64,
    /// The client certificate is another one since the last call, so that connections must be opened
    /// again.
    pub(crate) identity_changed: bool,
}

pub(crate) struct Credentials {
    credential: Credential,
    files: Option<(PathBuf, PathBuf)>,
    identity: ClientIdentity,
    clock: WallClock,
    before_plugin: fn(&mut Command),
    /// Locked while credentials are fetched: one does it, and all wait for it.
    state: Mutex<CredentialState>,
}

#[derive(Default)]
struct CredentialState {
    header: Option<HeaderValue>,
    generation: u64,
    /// When token file or plugin gave the header.
    fetched: Option<Instant>,
    expires: Option<Timestamp>,
    failed: Option<(Instant, CredentialError)>,
    /// A plugin that runs: a caller that stops waiting leaves it to the next one.
    running: Option<JoinHandle<Result<exec::PluginCredentials, ExecPluginError>>>,
    /// When the certificate's files were read, and a hash of what they held.
    looked: Option<Instant>,
    pair: Option<u64>,
    identity_changed: bool,
}

impl Credentials {
    /// Reads the files of the client certificate, so that mistakes show at once.
    pub(crate) fn new(
        credential: Credential,
        source: &IdentitySource,
        clock: WallClock,
        before_plugin: fn(&mut Command),
    ) -> Result<Self, CredentialError> {
        let mut state = CredentialState {
            header: fixed_header(&credential)?,
            ..CredentialState::default()
        };
        let (identity, files) = match source {
            IdentitySource::None => (ClientIdentity::new(), None),
            IdentitySource::Shared(identity) => (identity.clone(), None),
            IdentitySource::Files { certificate, key } => {
                let identity = ClientIdentity::new();
                let read = |path: &Path| {
                    std::fs::read(path).map_err(|error| file_error(path, error.to_string()))
                };
                let pair = (read(certificate)?, read(key)?);
                identity
                    .set_pem(&pair.0, &pair.1)
                    .map_err(|error| file_error(certificate, ErrorChain(&error).to_string()))?;
                state.pair = Some(fingerprint(&pair));
                (identity, Some((certificate.clone(), key.clone())))
            }
        };
        Ok(Self {
            credential,
            files,
            identity,
            clock,
            before_plugin,
            state: Mutex::new(state),
        })
    }

    /// The client certificate for TLS handshakes.
    pub(crate) fn identity(&self) -> &ClientIdentity {
        &self.identity
    }

    /// The current credentials for a request.
    pub(crate) async fn current(&self) -> Result<Authorization, CredentialError> {
        let mut state = self.state.lock().await;
        self.update(&mut state, false).await?;
        Ok(Authorization {
            header: state.header.clone(),
            generation: state.generation,
            identity_changed: std::mem::take(&mut state.identity_changed),
        })
    }

    /// The server refused the credentials of that generation: fetches new ones. Whether there are
    /// other ones now.
    pub(crate) async fn refused(&self, generation: u64) -> bool {
        let mut state = self.state.lock().await;
        if state.generation == generation
            && let Err(error) = self.update(&mut state, true).await
        {
            let error = ErrorChain(&error);
            tracing::warn!(%error, "The API server rejected the credentials, and reloading them failed");
        }
        state.generation != generation
    }

    async fn update(
        &self,
        state: &mut CredentialState,
        force: bool,
    ) -> Result<(), CredentialError> {
        if let Some((certificate, key)) = &self.files
            && (force || is_due(state.looked))
        {
            state.looked = Some(Instant::now());
            self.look_at_pair(state, certificate, key).await;
        }
        match &self.credential {
            Credential::None | Credential::Token(_) | Credential::Basic { .. } => Ok(()),
            Credential::TokenFile { path, otherwise } => {
                if force || is_due(state.fetched) {
                    let read = read_token(path).await;
                    if let Err(error) = &read {
                        tracing::warn!(%error, "Cannot reload the token; the previous one stays in use");
                    }
                    match (read, otherwise) {
                        (Ok(header), _) => state.set(header),
                        (Err(_), _) if state.header.is_some() => {}
                        (Err(_), Some(token)) => state.set(bearer(token)?),
                        (Err(error), None) => return Err(error),
                    }
                    state.fetched = Some(Instant::now());
                }
                Ok(())
            }
            Credential::Exec(plugin) => self.update_from_plugin(state, plugin, force).await,
        }
    }

    /// The files may be caught between two writes: what can't be used changes nothing.
    async fn look_at_pair(&self, state: &mut CredentialState, certificate: &Path, key: &Path) {
        let read = (
            tokio::fs::read(certificate).await,
            tokio::fs::read(key).await,
        );
        let (Ok(certificates), Ok(keys)) = read else {
            tracing::warn!(
                certificate = %certificate.display(),
                key = %key.display(),
                "Cannot read the client certificate; the previous one stays in use"
            );
            return;
        };
        let pair = (certificates, keys);
        let print = fingerprint(&pair);
        if state.pair == Some(print) {
            return;
        }
        match self.identity.set_pem(&pair.0, &pair.1) {
            Ok(()) => {
                tracing::info!(certificate = %certificate.display(), "Reloaded the client certificate");
                state.pair = Some(print);
                state.generation += 1;
                state.identity_changed = true;
            }
            Err(error) => tracing::warn!(
                error = %ErrorChain(&error),
                certificate = %certificate.display(),
                "Cannot use the new client certificate; the previous one stays in use"
            ),
        }
    }

    async fn update_from_plugin(
        &self,
        state: &mut CredentialState,
        plugin: &ExecPlugin,
        force: bool,
    ) -> Result<(), CredentialError> {
        let now = (self.clock)().as_second();
        let expired = state
            .expires
            .is_some_and(|expires| now + MARGIN >= expires.as_second());
        if state.fetched.is_some() && !expired && !force {
            return Ok(());
        }
        if let Some((when, error)) = &state.failed
            && when.elapsed() < PLUGIN_PAUSE
        {
            return Err(error.clone());
        }
        let start = || tokio::spawn(exec::run(plugin.clone(), self.before_plugin));
        let joined = state.running.get_or_insert_with(start).await;
        state.running = None;
        let printed = joined.unwrap_or_else(|error| Err(error.into()));
        let printed = printed.and_then(|printed| {
            let header = printed.token.as_ref().map(bearer).transpose();
            let header = header.map_err(|_| ExecPluginError::TokenCharacters)?;
            if let Some((certificate, key)) = &printed.pair {
                let print = fingerprint(&(certificate, key));
                if state.pair != Some(print) {
                    self.identity
                        .set_pem(certificate.as_bytes(), key.as_bytes())?;
                    state.pair = Some(print);
                    state.generation += 1;
                    // Before the first request there is no connection that shows another one.
                    state.identity_changed = state.fetched.is_some();
                }
            }
            Ok((header, printed.expires))
        });
        match printed {
            Ok((header, expires)) => {
                state.expires = expires;
                state.fetched = Some(Instant::now());
                state.failed = None;
                if state.header != header {
                    state.header = header;
                    state.generation += 1;
                }
                Ok(())
            }
            Err(error) => {
                let error = CredentialError::Exec {
                    command: plugin.command.display().to_string(),
                    source: Arc::new(error),
                };
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

impl CredentialState {
    fn set(&mut self, header: HeaderValue) {
        if self.header.as_ref() != Some(&header) {
            self.header = Some(header);
            self.generation += 1;
        }
    }
}

fn is_due(last: Option<Instant>) -> bool {
    last.is_none_or(|last| last.elapsed() >= LOOK_AGAIN)
}

fn file_error(path: &Path, problem: String) -> CredentialError {
    let path = path.to_owned();
    CredentialError::File { path, problem }
}

fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn fixed_header(credential: &Credential) -> Result<Option<HeaderValue>, CredentialError> {
    match credential {
        Credential::None | Credential::TokenFile { .. } | Credential::Exec(_) => Ok(None),
        Credential::Token(token) => bearer(token).map(Some),
        Credential::Basic { user, password } => {
            let both = STANDARD.encode(format!("{user}:{}", password.expose()));
            sensitive(&format!("Basic {both}"), "password").map(Some)
        }
    }
}

async fn read_token(path: &Path) -> Result<HeaderValue, CredentialError> {
    let read = tokio::fs::read_to_string(path).await;
    let text = read.map_err(|error| file_error(path, error.to_string()))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(file_error(path, "holds no token".to_owned()));
    }
    bearer(&Secret::new(token))
        .map_err(|_| file_error(path, "holds characters that no token has".to_owned()))
}

fn bearer(token: &Secret) -> Result<HeaderValue, CredentialError> {
    sensitive(&format!("Bearer {}", token.expose()), "token")
}

fn sensitive(text: &str, what: &'static str) -> Result<HeaderValue, CredentialError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| CredentialError::Characters(what))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
