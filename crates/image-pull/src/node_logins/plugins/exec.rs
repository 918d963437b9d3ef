//! One run of a plugin: its request and its response.

use std::{collections::BTreeMap, path::Path, process::Stdio, sync::Arc, time::Duration};

use rubelet_base::duration::parse_go;
use rubelet_config::CredentialProvider;
use rubelet_host::open_files::limit_as_before;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

use super::{account::AccountRequest, error::PluginError};

/// Timeout of a plugin (kubelet: 1 m).
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a response.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// Maximum size of the stderr output in an error.
const MAX_STDERR: u64 = 1024;

/// The response of a plugin. Must not be logged.
pub(super) struct PluginAnswer {
    /// User name and password, by registry or repository.
    pub(super) auth: BTreeMap<String, (String, String)>,
    /// The cache duration; `None`: the default of the configuration.
    pub(super) duration: Option<Duration>,
    pub(super) scope: CacheScope,
}

impl std::fmt::Debug for PluginAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let registries: Vec<&String> = self.auth.keys().collect();
        f.debug_struct("PluginAnswer")
            .field("registries", &registries)
            .finish_non_exhaustive()
    }
}

/// `cacheKeyType`: the images for which a response is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum CacheScope {
    Image,
    Registry,
    Global,
}

/// The cache key of a response.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CacheKey {
    Image(String),
    Registry(String),
    Global,
}

impl CacheScope {
    pub(super) fn key(self, repository: &str) -> CacheKey {
        match self {
            Self::Image => CacheKey::Image(repository.to_owned()),
            Self::Registry => {
                let host = repository.split('/').next().unwrap_or_default();
                CacheKey::Registry(host.to_owned())
            }
            Self::Global => CacheKey::Global,
        }
    }
}

impl CacheKey {
    /// All keys under which a response for an image may be cached, the most specific first.
    pub(super) fn all_of(repository: &str) -> [Self; 3] {
        [CacheScope::Image, CacheScope::Registry, CacheScope::Global]
            .map(|scope| scope.key(repository))
    }
}

/// The request on the plugin's stdin. Empty fields are omitted, as upstream does.
fn request(version: &str, image: &str, account: Option<&AccountRequest>) -> String {
    let mut request = json!({
        "apiVersion": version,
        "kind": "CredentialProviderRequest",
        "image": image,
    });
    if let Some(account) = account {
        request["serviceAccountToken"] = (&*account.token.0).into();
        if !account.annotations.is_empty() {
            request["serviceAccountAnnotations"] = json!(account.annotations);
        }
    }
    request.to_string()
}

/// Runs the program for an image, on behalf of a service account or of the node. The error includes
/// neither the program's name nor anything that it printed as its response.
pub(super) async fn run(
    provider: &CredentialProvider,
    program: &Path,
    image: &str,
    account: Option<&AccountRequest>,
) -> Result<PluginAnswer, PluginError> {
    let mut command = Command::new(program);
    command
        .args(&provider.args)
        .envs(provider.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    limit_as_before(command.as_std_mut());
    let mut child = command
        .spawn()
        .map_err(|error| PluginError::Start(Arc::new(error)))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(PluginError::NoPipes);
    };
    let request = request(&provider.api_version, image, account);
    let all = async {
        let tell = async {
            // A plugin may respond without reading its input.
            let _ignored = stdin.write_all(request.as_bytes()).await;
            drop(stdin);
        };
        let ((), printed, stderr) = tokio::join!(
            tell,
            start_of(stdout, MAX_OUTPUT),
            start_of(stderr, MAX_STDERR)
        );
        (printed, stderr, child.wait().await)
    };
    let (printed, stderr, status) = timeout(TIMEOUT, all)
        .await
        .map_err(|_| PluginError::TimedOut(TIMEOUT))?;
    let status = status.map_err(|error| PluginError::Wait(Arc::new(error)))?;
    if !status.success() {
        let stderr = String::from_utf8_lossy(&stderr);
        let stderr = stderr.trim().replace(char::is_control, " ");
        // The token must not appear in the log.
        let stderr = match account {
            Some(account) => stderr.replace(&*account.token.0, "(token)"),
            None => stderr,
        };
        return Err(PluginError::Failed { status, stderr });
    }
    parse(&provider.api_version, &printed)
}

/// Reads to the end or the first error, and keeps the first `most` bytes.
async fn start_of(mut from: impl AsyncRead + Unpin, most: u64) -> Vec<u8> {
    let mut start = Vec::new();
    if (&mut from).take(most).read_to_end(&mut start).await.is_ok() {
        // Drain the pipe, so that the plugin does not block on a full one.
        let _ignored = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    start
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    cache_key_type: Option<String>,
    cache_duration: Option<String>,
    #[serde(default)]
    auth: Option<BTreeMap<String, Login>>,
}

#[derive(Deserialize)]
struct Login {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

pub(super) fn parse(version: &str, printed: &[u8]) -> Result<PluginAnswer, PluginError> {
    // The parser's own message may quote a password.
    let response: Response =
        serde_json::from_slice(printed).map_err(|_| PluginError::NotAResponse)?;
    if response.kind != "CredentialProviderResponse" {
        return Err(PluginError::NotAResponse);
    }
    if response.api_version != version {
        return Err(PluginError::ApiVersion {
            expected: version.to_owned(),
        });
    }
    let scope = match response.cache_key_type.as_deref() {
        Some("Image") => CacheScope::Image,
        Some("Registry") => CacheScope::Registry,
        Some("Global") => CacheScope::Global,
        _ => return Err(PluginError::CacheKeyType),
    };
    let duration = response.cache_duration.as_deref().map(parse_go).transpose();
    let duration = duration.map_err(|_| PluginError::CacheDuration)?;
    let auth = response.auth.unwrap_or_default().into_iter();
    Ok(PluginAnswer {
        auth: auth
            .map(|(place, login)| (place, (login.username, login.password)))
            .collect(),
        duration,
        scope,
    })
}
