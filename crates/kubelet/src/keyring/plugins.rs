//! Programs that give credentials for registries (`--image-credential-provider-config`): each is asked for
//! images that its patterns fit, and its answers are kept as long as they say.
//!
//! Source of the rules: `pkg/credentialprovider/plugin/plugin.go` of Kubernetes 1.36.

mod exec;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use rubelet_config::CredentialProvider;
use rubelet_cri::v1::AuthConfig;
use tokio::time::Instant;
use tracing::warn;

use self::exec::{Answer, CacheKey};
use super::{Entry, Keyring, matches_place, repository};

/// So many answers of a program are kept at most; of more, those that end first go.
const MOST_KEPT: usize = 1024;

/// The plugins of a node.
#[derive(Debug)]
pub struct CredentialPlugins(Vec<Plugin>);

/// Why a plugin can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginSetupError {
    /// Its program can't be looked at.
    #[error("plugin binary executable {}", path.display())]
    Program {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no file that may be executed.
    #[error("plugin binary {} cannot be executed", .0.display())]
    NotExecutable(PathBuf),
}

type Asked = Shared<BoxFuture<'static, Result<Arc<Answer>, String>>>;

#[derive(Debug)]
struct Plugin {
    provider: Arc<CredentialProvider>,
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By what they are for.
    kept: BTreeMap<CacheKey, Kept>,
    /// Who asks for an image that is being asked for waits for that answer.
    asked: BTreeMap<String, Asked>,
}

#[derive(Debug)]
struct Kept {
    answer: Arc<Answer>,
    until: Instant,
}

impl CredentialPlugins {
    /// The plugins of these providers, whose programs are in `folder`.
    ///
    /// # Errors
    /// A program is not there, or can't be executed.
    pub fn new(
        providers: Vec<CredentialProvider>,
        folder: &Path,
    ) -> Result<Self, PluginSetupError> {
        let plugins = providers.into_iter().map(|provider| {
            let path = folder.join(&provider.name);
            let found = match fs::metadata(&path) {
                Ok(found) => found,
                Err(source) => return Err(PluginSetupError::Program { path, source }),
            };
            if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
                return Err(PluginSetupError::NotExecutable(path));
            }
            Ok(Plugin {
                provider: Arc::new(provider),
                program: path,
                state: Mutex::default(),
            })
        });
        plugins.collect::<Result<_, _>>().map(Self)
    }

    /// The credentials for an image, which may have a tag or digest. A plugin that fails has none; the log
    /// says why.
    pub async fn lookup(&self, image: &str) -> Vec<AuthConfig> {
        let repository = repository(image);
        let mut found = Vec::new();
        for plugin in &self.0 {
            let mut patterns = plugin.provider.match_images.iter();
            if !patterns.any(|pattern| matches_place(pattern, &repository)) {
                continue;
            }
            match plugin.answer(&repository).await {
                Ok(answer) => found.extend(logins(&answer, &repository)),
                Err(error) => {
                    let name = &plugin.provider.name;
                    warn!(
                        plugin = name,
                        image = repository,
                        error,
                        "Failed to get credentials for an image"
                    );
                }
            }
        }
        found
    }
}

fn logins(answer: &Answer, repository: &str) -> Vec<AuthConfig> {
    let mut ring = Keyring::default();
    let entries = answer.auth.iter().map(|(place, (username, password))| {
        let entry = Entry {
            username: Some(username.clone()),
            password: Some(password.clone()),
            auth: None,
        };
        (place.clone(), entry)
    });
    match ring.add(entries.collect()) {
        Ok(()) => ring.lookup(repository),
        Err(_) => Vec::new(),
    }
}

impl Plugin {
    async fn answer(&self, repository: &str) -> Result<Arc<Answer>, String> {
        let asked = {
            let mut state = self.lock();
            if let Some(answer) = state.find(repository, Instant::now()) {
                return Ok(answer);
            }
            let (provider, program) = (Arc::clone(&self.provider), self.program.clone());
            let image = repository.to_owned();
            let ask = move || {
                let call =
                    async move { exec::run(&provider, &program, &image).await.map(Arc::new) };
                call.boxed().shared()
            };
            state
                .asked
                .entry(repository.to_owned())
                .or_insert_with(ask)
                .clone()
        };
        let result = asked.clone().await;
        let mut state = self.lock();
        // Whoever comes first keeps the answer, for all that waited.
        if state
            .asked
            .get(repository)
            .is_some_and(|one| one.ptr_eq(&asked))
        {
            state.asked.remove(repository);
            if let Ok(answer) = &result {
                let most = self.provider.default_cache_duration;
                state.keep(repository, answer, most, Instant::now());
            }
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&mut self, repository: &str, now: Instant) -> Option<Arc<Answer>> {
        self.kept.retain(|_, kept| kept.until > now);
        let keys = CacheKey::all_of(repository);
        let mut found = keys.iter().filter_map(|key| self.kept.get(key));
        found.next().map(|kept| Arc::clone(&kept.answer))
    }

    /// Keeps an answer as long as it says, or for `default` where it says nothing.
    fn keep(&mut self, repository: &str, answer: &Arc<Answer>, default: Duration, now: Instant) {
        let duration = answer.duration.unwrap_or(default);
        if duration.is_zero() {
            return;
        }
        while self.kept.len() >= MOST_KEPT {
            let first = self.kept.iter().min_by_key(|(_, kept)| kept.until);
            let Some(key) = first.map(|(key, _)| key.clone()) else {
                break;
            };
            self.kept.remove(&key);
        }
        let until = now.checked_add(duration).unwrap_or(now);
        let answer = Arc::clone(answer);
        let key = answer.scope.key(repository);
        self.kept.insert(key, Kept { answer, until });
    }
}

#[cfg(test)]
mod tests;
