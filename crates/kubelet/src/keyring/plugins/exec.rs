//! One call of a program: what it is told and what it answers.

use std::{collections::BTreeMap, path::Path, process::Stdio, time::Duration};

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

/// A program that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Credentials are small.
const MOST_OUTPUT: u64 = 1024 * 1024;
/// What of a program's complaints is shown.
const MOST_COMPLAINT: u64 = 1024;

/// What a program answered. It is not for the log.
pub(super) struct Answer {
    /// User name and password, by place.
    pub(super) auth: BTreeMap<String, (String, String)>,
    /// How long it is good for; `None`: as the configuration says.
    pub(super) duration: Option<Duration>,
    pub(super) scope: Scope,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places: Vec<&String> = self.auth.keys().collect();
        f.debug_struct("Answer")
            .field("places", &places)
            .finish_non_exhaustive()
    }
}

/// `cacheKeyType`: which images an answer is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Scope {
    Image,
    Registry,
    Global,
}

/// What an answer is kept for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CacheKey {
    Image(String),
    Registry(String),
    Global,
}

impl Scope {
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
    /// Under which an answer for an image may be kept, the most exact first.
    pub(super) fn all_of(repository: &str) -> [Self; 3] {
        [Scope::Image, Scope::Registry, Scope::Global].map(|scope| scope.key(repository))
    }
}

/// Asks the program for an image. The error names neither the program nor anything it printed as its answer.
pub(super) async fn run(
    provider: &CredentialProvider,
    program: &Path,
    image: &str,
) -> Result<Answer, String> {
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
        .map_err(|error| format!("it can't be started: {error}"))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err("it has no pipes".to_owned());
    };
    let request = json!({
        "apiVersion": provider.api_version,
        "kind": "CredentialProviderRequest",
        "image": image,
    });
    let request = request.to_string();
    let all = async {
        let tell = async {
            // One that does not read its input answers all the same.
            let _ignored = stdin.write_all(request.as_bytes()).await;
            drop(stdin);
        };
        let ((), printed, complaint) = tokio::join!(
            tell,
            start_of(stdout, MOST_OUTPUT),
            start_of(stderr, MOST_COMPLAINT)
        );
        (printed, complaint, child.wait().await)
    };
    let (printed, complaint, status) = timeout(PATIENCE, all)
        .await
        .map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?;
    let status = status.map_err(|error| error.to_string())?;
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint);
        let complaint = complaint.trim().replace(char::is_control, " ");
        return Err(format!("it failed ({status}): {complaint}"));
    }
    parse(&provider.api_version, &printed)
}

/// Reads everything and keeps the first part. What can't be read ends it.
async fn start_of(mut from: impl AsyncRead + Unpin, most: u64) -> Vec<u8> {
    let mut start = Vec::new();
    if (&mut from).take(most).read_to_end(&mut start).await.is_ok() {
        // Whoever writes on must not be stopped by a full pipe.
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

pub(super) fn parse(version: &str, printed: &[u8]) -> Result<Answer, String> {
    // The parser's own message may quote a password.
    let response: Response = serde_json::from_slice(printed)
        .map_err(|_| "its answer is no CredentialProviderResponse".to_owned())?;
    if response.kind != "CredentialProviderResponse" {
        return Err("its answer is no CredentialProviderResponse".to_owned());
    }
    if response.api_version != version {
        return Err(format!(
            "its answer has another apiVersion than {version}, which it was asked with"
        ));
    }
    let scope = match response.cache_key_type.as_deref() {
        Some("Image") => Scope::Image,
        Some("Registry") => Scope::Registry,
        Some("Global") => Scope::Global,
        _ => return Err("cacheKeyType of its answer is not Image, Registry or Global".to_owned()),
    };
    let duration = response.cache_duration.as_deref().map(parse_go).transpose();
    let duration = duration.map_err(|_| "cacheDuration of its answer is no duration".to_owned())?;
    let auth = response.auth.unwrap_or_default().into_iter();
    Ok(Answer {
        auth: auth
            .map(|(place, login)| (place, (login.username, login.password)))
            .collect(),
        duration,
        scope,
    })
}
