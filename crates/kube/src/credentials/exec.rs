//! Credential plugins: programs that print an `ExecCredential`.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    task::JoinError,
    time::timeout,
};

use crate::{
    config::{ExecPlugin, ExecVersion},
    identity::IdentityError,
    secret::Secret,
};

/// Why a credential plugin gave no credentials. No text in it is a secret.
#[derive(Debug, thiserror::Error)]
pub enum ExecPluginError {
    /// It could not be started.
    #[error("{}", not_started(error, install_hint.as_deref()))]
    NotStarted {
        /// The error; its text is part of this one's.
        error: io::Error,
        /// `installHint` of the kubeconfig.
        install_hint: Option<String>,
    },
    /// It did not exit in time.
    #[error("no answer within {}s", PLUGIN_TIMEOUT.as_secs())]
    TimedOut,
    /// Its exit could not be waited for.
    #[error(transparent)]
    Wait(io::Error),
    /// It failed.
    #[error("it failed ({status}){}", after_colon(stderr))]
    Failed {
        /// Its exit.
        status: ExitStatus,
        /// The start of its standard error on one line; may be empty.
        stderr: String,
    },
    /// Its output can't be parsed. The parser's message could quote what was printed.
    #[error("it printed no ExecCredential (line {line}, column {column})")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// It printed something other than the configured version of an `ExecCredential`.
    #[error("it printed {api_version} {kind}, and {expected} ExecCredential is configured")]
    OtherKind {
        /// The printed API version.
        api_version: String,
        /// The printed kind.
        kind: String,
        /// The configured API version.
        expected: &'static str,
    },
    /// Its output has no status.
    #[error("it printed no status")]
    NoStatus,
    /// Half of a pair.
    #[error("it printed a certificate or a key without the other")]
    HalfPair,
    /// Its status has no credentials.
    #[error("it printed neither a token nor a certificate")]
    NoCredentials,
    /// No header can carry its token.
    #[error("invalid character in the token")]
    TokenCharacters,
    /// Its certificate or key can't be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The task that ran it panicked.
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

/// Credentials from a plugin's output: a token, a pair, or both.
pub(super) struct PluginCredentials {
    pub(super) token: Option<Secret>,
    /// Certificate chain and key in PEM.
    pub(super) pair: Option<(String, String)>,
    pub(super) expires: Option<Timestamp>,
}

/// A plugin that takes longer hangs: it has no terminal at which a user could answer.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Credentials are small.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// Maximum length of a plugin's standard error in messages.
const MAX_STDERR: u64 = 1024;

/// Runs the plugin. The error is without the plugin's name.
pub(super) async fn run(
    plugin: ExecPlugin,
    before: fn(&mut std::process::Command),
) -> Result<PluginCredentials, ExecPluginError> {
    let mut command = Command::new(&plugin.command);
    command
        .args(&plugin.args)
        .envs(plugin.env.iter().map(|(name, value)| (name, value)))
        .env("KUBERNETES_EXEC_INFO", information(&plugin))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    before(command.as_std_mut());
    let mut child = command
        .spawn()
        .map_err(|error| ExecPluginError::NotStarted {
            error,
            install_hint: plugin.install_hint.clone(),
        })?;
    let stdout = child.stdout.take().expect("standard output is piped");
    let stderr = child.stderr.take().expect("standard error is piped");
    let all = async {
        let (printed, complaint) =
            tokio::join!(start_of(stdout, MAX_OUTPUT), start_of(stderr, MAX_STDERR));
        let status = child.wait().await;
        (printed, complaint, status)
    };
    let (printed, complaint, status) = timeout(PLUGIN_TIMEOUT, all)
        .await
        .map_err(|_| ExecPluginError::TimedOut)?;
    let status = status.map_err(ExecPluginError::Wait)?;
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint);
        return Err(ExecPluginError::Failed {
            status,
            stderr: complaint.trim().replace('\n', "; "),
        });
    }
    parse(plugin.version, &printed)
}

/// Reads everything and keeps the first part. What can't be read ends it.
async fn start_of(mut from: impl AsyncRead + Unpin, most: u64) -> Vec<u8> {
    let mut start = Vec::new();
    if (&mut from).take(most).read_to_end(&mut start).await.is_ok() {
        // A process that keeps writing must not be stopped by a full pipe.
        let _ignored = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    start
}

fn not_started(error: &io::Error, install_hint: Option<&str>) -> String {
    let problem = match error.kind() {
        io::ErrorKind::NotFound => "no such program".to_owned(),
        _ => error.to_string(),
    };
    match install_hint {
        Some(hint) => format!("{problem}; {}", hint.trim()),
        None => problem,
    }
}

fn after_colon(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

/// The input of the plugin: an `ExecCredential` as JSON.
fn information(plugin: &ExecPlugin) -> String {
    let mut spec = json!({ "interactive": false });
    if let Some(cluster) = &plugin.cluster {
        spec["cluster"] = cluster.clone();
    }
    let version = plugin.version.api_version();
    json!({ "kind": "ExecCredential", "apiVersion": version, "spec": spec }).to_string()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<Timestamp>,
    #[serde(default)]
    token: String,
    #[serde(default)]
    client_certificate_data: String,
    #[serde(default)]
    client_key_data: String,
}

fn parse(version: ExecVersion, printed: &[u8]) -> Result<PluginCredentials, ExecPluginError> {
    let credential: ExecCredential =
        serde_json::from_slice(printed).map_err(|error| ExecPluginError::Syntax {
            line: error.line(),
            column: error.column(),
        })?;
    if credential.kind != "ExecCredential" || credential.api_version != version.api_version() {
        return Err(ExecPluginError::OtherKind {
            api_version: credential.api_version,
            kind: credential.kind,
            expected: version.api_version(),
        });
    }
    let status = credential.status.ok_or(ExecPluginError::NoStatus)?;
    let pair = match (status.client_certificate_data, status.client_key_data) {
        (certificate, key) if certificate.is_empty() && key.is_empty() => None,
        (certificate, key) if !certificate.is_empty() && !key.is_empty() => {
            Some((certificate, key))
        }
        _ => return Err(ExecPluginError::HalfPair),
    };
    let token = Some(status.token).filter(|token| !token.is_empty());
    if token.is_none() && pair.is_none() {
        return Err(ExecPluginError::NoCredentials);
    }
    Ok(PluginCredentials {
        token: token.map(Secret::new),
        pair,
        expires: status.expiration_timestamp,
    })
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt as _, sync::Arc};

    use rubelet_base::ErrorChain;

    use super::*;
    use crate::CredentialError;

    fn problem(text: &str) -> String {
        match parse(ExecVersion::V1, text.as_bytes()) {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_token_with_its_expiry_is_read() {
        let text = r#"{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1",
            "status": {"token": "t", "expirationTimestamp": "2030-01-01T00:00:00Z"}}"#;
        let printed = parse(ExecVersion::V1beta1, text.as_bytes()).ok().unwrap();
        assert_eq!(printed.token.unwrap().expose(), "t");
        assert_eq!(printed.expires.unwrap().as_second(), 1_893_456_000);
        assert!(printed.pair.is_none());
    }

    #[test]
    fn an_invalid_credential_is_named_without_being_shown() {
        let head = r#""kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1""#;
        for (text, expected) in [
            (r#"{"token": "secret"#.to_owned(), "no ExecCredential"),
            (r#"{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1"}"#.to_owned(), "client.authentication.k8s.io/v1 ExecCredential is configured"),
            (format!("{{{head}}}"), "no status"),
            (format!("{{{head}, \"status\": {{}}}}"), "neither a token"),
            (format!("{{{head}, \"status\": {{\"clientKeyData\": \"secret\"}}}}"), "without the other"),
            (format!("{{{head}, \"status\": {{\"token\": [\"secret\"]}}}}"), "no ExecCredential"),
        ] {
            let problem = problem(&text);
            assert!(problem.contains(expected), "{problem}");
            assert!(!problem.contains("secret"), "{problem}");
        }
    }

    #[test]
    fn the_text_of_a_failure_names_its_cause() {
        let missing = ExecPluginError::NotStarted {
            error: io::ErrorKind::NotFound.into(),
            install_hint: Some(" install it\n".to_owned()),
        };
        assert_eq!(missing.to_string(), "no such program; install it");
        let failed = |stderr: &str| {
            let error = ExecPluginError::Failed {
                status: ExitStatus::from_raw(256),
                stderr: stderr.to_owned(),
            };
            error.to_string()
        };
        assert_eq!(failed(""), "it failed (exit status: 1)");
        assert_eq!(failed("denied"), "it failed (exit status: 1): denied");
        let late = ExecPluginError::TimedOut;
        assert_eq!(late.to_string(), "no answer within 60s");
        let error = CredentialError::Exec {
            command: "plugin".to_owned(),
            source: Arc::new(ExecPluginError::NoStatus),
        };
        assert_eq!(
            ErrorChain(&error).to_string(),
            "credential plugin \"plugin\": it printed no status"
        );
    }
}
