//! Programs that return credentials for registries (`--image-credential-provider-config`): each is
//! run for images that its patterns match, and its responses are cached as long as they specify.
//!
//! Source of the rules: `pkg/credentialprovider/plugin/plugin.go` of Kubernetes 1.36.

mod account;
mod config_hash;
mod error;
mod exec;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use rubelet_api::pod::Pod;
use rubelet_config::CredentialProvider;
use rubelet_cri::v1::AuthConfig;
use rubelet_node_state::{
    keyring::{Keyring, LoginSource, PullLogin, matches_registry, repository},
    metrics::NodeMetrics,
    objects::ServiceAccounts,
};
use tokio::time::Instant;
use tracing::{debug, warn};

pub use self::config_hash::config_hash;
use self::{
    account::{AccountKey, AccountRequest, PluginSubject, RequestKey},
    error::PluginError,
    exec::{CacheKey, PluginAnswer},
};

/// Maximum number of cached responses of a plugin; those that expire first are evicted.
const MAX_CACHED: usize = 1024;

/// The plugins of a node.
#[derive(Debug)]
pub struct CredentialPlugins(Vec<Plugin>);

/// A plugin can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginSetupError {
    /// stat of its program failed.
    #[error("plugin binary executable {}", path.display())]
    Program {
        /// Its expected path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The program is not an executable file.
    #[error("plugin binary {} cannot be executed", .0.display())]
    NotExecutable(PathBuf),
}

type SharedPluginCall = Shared<BoxFuture<'static, Result<Arc<PluginAnswer>, PluginError>>>;

#[derive(Debug)]
struct Plugin {
    provider: Arc<CredentialProvider>,
    program: PathBuf,
    metrics: Arc<NodeMetrics>,
    cache: Mutex<PluginCache>,
}

#[derive(Debug, Default)]
struct PluginCache {
    /// Responses, by images and pods for which they are valid.
    kept: BTreeMap<(CacheKey, Option<AccountKey>), CachedAnswer>,
    /// Requests in progress; the same request waits for that response.
    asked: BTreeMap<(String, Option<RequestKey>), SharedPluginCall>,
}

#[derive(Debug)]
struct CachedAnswer {
    answer: Arc<PluginAnswer>,
    until: Instant,
}

impl CredentialPlugins {
    /// The plugins of these providers, whose programs are in `directory`.
    ///
    /// # Errors
    /// A program does not exist or can't be executed.
    pub fn new(
        providers: Vec<CredentialProvider>,
        directory: &Path,
        metrics: &Arc<NodeMetrics>,
    ) -> Result<Self, PluginSetupError> {
        let plugins = providers.into_iter().map(|provider| {
            let path = directory.join(&provider.name);
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
                metrics: Arc::clone(metrics),
                cache: Mutex::default(),
            })
        });
        plugins.collect::<Result<_, _>>().map(Self)
    }

    /// The credentials for an image of this pod, which may have a tag or digest. A failure of a
    /// plugin is logged. A plugin that uses tokens gets one of the pod's service account.
    pub async fn lookup(
        &self,
        image: &str,
        pod: &Pod,
        accounts: &dyn ServiceAccounts,
    ) -> Vec<PullLogin> {
        let repository = repository(image);
        let mut found = Vec::new();
        for plugin in &self.0 {
            let mut patterns = plugin.provider.match_images.iter();
            if !patterns.any(|pattern| matches_registry(pattern, &repository)) {
                continue;
            }
            match plugin.logins(&repository, pod, accounts).await {
                Ok(logins) => found.extend(logins),
                Err(error) => {
                    warn!(
                        plugin = plugin.provider.name,
                        image = repository,
                        pod = %pod.name,
                        %error,
                        "Failed to get credentials for an image from a credential provider plugin"
                    );
                }
            }
        }
        found
    }

    /// The names of plugins that only run for pods with a service account.
    #[must_use]
    pub fn only_for_accounts(&self) -> Vec<&str> {
        let requires = |plugin: &&Plugin| {
            let attributes = plugin.provider.token_attributes.as_ref();
            attributes.is_some_and(|attributes| attributes.require_service_account)
        };
        let plugins = self.0.iter().filter(requires);
        plugins.map(|plugin| &*plugin.provider.name).collect()
    }
}

fn logins(answer: &PluginAnswer, repository: &str) -> Vec<AuthConfig> {
    let mut ring = Keyring::default();
    for (registry, (username, password)) in &answer.auth {
        ring.add_login(registry, username, password);
    }
    ring.lookup(repository)
}

impl Plugin {
    async fn logins(
        &self,
        repository: &str,
        pod: &Pod,
        accounts: &dyn ServiceAccounts,
    ) -> Result<Vec<PullLogin>, PluginError> {
        let subject =
            PluginSubject::of(self.provider.token_attributes.as_ref(), pod, accounts).await?;
        if let PluginSubject::Skip(why) = subject {
            let plugin = &self.provider.name;
            debug!(plugin, image = repository, pod = %pod.name, why, "Skipping a credential provider plugin");
            return Ok(Vec::new());
        }
        let account = subject.account();
        let answer = self.answer(repository, account).await?;
        let source = account.map_or(LoginSource::Node, |request| {
            LoginSource::ServiceAccount(request.account.clone())
        });
        let logins = logins(&answer, repository).into_iter();
        let of_source = |auth| PullLogin {
            auth,
            source: source.clone(),
        };
        Ok(logins.map(of_source).collect())
    }

    async fn answer(
        &self,
        repository: &str,
        account: Option<&AccountRequest>,
    ) -> Result<Arc<PluginAnswer>, PluginError> {
        let question = (
            repository.to_owned(),
            account.map(AccountRequest::request_key),
        );
        let whose = account.map(AccountRequest::cache_key);
        let asked = {
            let mut state = self.cache.lock();
            if let Some(answer) = state.find(repository, whose.as_ref(), Instant::now()) {
                return Ok(answer);
            }
            let (provider, program) = (Arc::clone(&self.provider), self.program.clone());
            let metrics = Arc::clone(&self.metrics);
            let (image, account) = (repository.to_owned(), account.cloned());
            let ask = move || {
                let call = async move {
                    let account = account.as_ref();
                    let began = Instant::now();
                    let answer = exec::run(&provider, &program, &image, account).await;
                    let (name, took) = (&provider.name, began.elapsed());
                    metrics.images.plugin_ran(name, took, answer.is_ok());
                    let answer = answer?;
                    may_be_kept(&answer, account)?;
                    Ok(Arc::new(answer))
                };
                call.boxed().shared()
            };
            let asked = state.asked.entry(question.clone());
            asked.or_insert_with(ask).clone()
        };
        let result = asked.clone().await;
        let mut state = self.cache.lock();
        // The first of the waiting calls caches the response.
        if state
            .asked
            .get(&question)
            .is_some_and(|one| one.ptr_eq(&asked))
        {
            state.asked.remove(&question);
            if let Ok(answer) = &result {
                let most = self.provider.default_cache_duration;
                state.keep((repository, whose), answer, most, Instant::now());
            }
        }
        result
    }
}

/// A token as a password is valid for one pod only, so it can't be cached for a service account.
fn may_be_kept(answer: &PluginAnswer, account: Option<&AccountRequest>) -> Result<(), PluginError> {
    let may_share = |request: &AccountRequest| {
        let mut logins = answer.auth.values();
        logins.all(|(_, password)| request.may_share(password))
    };
    match account.is_none_or(may_share) {
        true => Ok(()),
        false => Err(PluginError::TokenAsPassword),
    }
}

impl PluginCache {
    fn find(
        &mut self,
        repository: &str,
        whose: Option<&AccountKey>,
        now: Instant,
    ) -> Option<Arc<PluginAnswer>> {
        self.kept.retain(|_, kept| kept.until > now);
        let keys = CacheKey::all_of(repository).map(|key| (key, whose.cloned()));
        let mut found = keys.iter().filter_map(|key| self.kept.get(key));
        found.next().map(|kept| Arc::clone(&kept.answer))
    }

    /// Caches a response for the duration that it specifies, or for `default` if it specifies none.
    fn keep(
        &mut self,
        (repository, whose): (&str, Option<AccountKey>),
        answer: &Arc<PluginAnswer>,
        default: Duration,
        now: Instant,
    ) {
        let duration = answer.duration.unwrap_or(default);
        if duration.is_zero() {
            return;
        }
        while self.kept.len() >= MAX_CACHED {
            let first = self.kept.iter().min_by_key(|(_, kept)| kept.until);
            let Some(key) = first.map(|(key, _)| key.clone()) else {
                break;
            };
            self.kept.remove(&key);
        }
        let until = now.checked_add(duration).unwrap_or(now);
        let answer = Arc::clone(answer);
        let key = answer.scope.key(repository);
        self.kept
            .insert((key, whose), CachedAnswer { answer, until });
    }
}

#[cfg(test)]
mod tests;
