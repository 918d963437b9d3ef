//! Credential plugins: programs that print an `ExecCredential`.

use std::{io, process::Stdio, time::Duration};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::timeout,
};

use crate::{
    config::{ExecPlugin, ExecVersion},
    secret::Secret,
};

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
) -> Result<PluginCredentials, String> {
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
        .map_err(|error| not_started(&plugin, &error))?;
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
        .map_err(|_| format!("no answer within {}s", PLUGIN_TIMEOUT.as_secs()))?;
    let status = status.map_err(|error| error.to_string())?;
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint);
        let complaint = complaint.trim().replace('\n', "; ");
        return Err(match complaint.as_str() {
            "" => format!("it failed ({status})"),
            complaint => format!("it failed ({status}): {complaint}"),
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

fn not_started(plugin: &ExecPlugin, error: &io::Error) -> String {
    let problem = match error.kind() {
        io::ErrorKind::NotFound => "no such program".to_owned(),
        _ => error.to_string(),
    };
    match &plugin.install_hint {
        Some(hint) => format!("{problem}; {}", hint.trim()),
        None => problem,
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

fn parse(version: ExecVersion, printed: &[u8]) -> Result<PluginCredentials, String> {
    // The parser's message could quote what was printed.
    let credential: ExecCredential = serde_json::from_slice(printed).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("it printed no ExecCredential (line {line}, column {column})")
    })?;
    if credential.kind != "ExecCredential" || credential.api_version != version.api_version() {
        return Err(format!(
            "it printed {} {}, and {} ExecCredential is configured",
            credential.api_version,
            credential.kind,
            version.api_version()
        ));
    }
    let status = credential.status.ok_or("it printed no status")?;
    let pair = match (status.client_certificate_data, status.client_key_data) {
        (certificate, key) if certificate.is_empty() && key.is_empty() => None,
        (certificate, key) if !certificate.is_empty() && !key.is_empty() => {
            Some((certificate, key))
        }
        _ => return Err("it printed a certificate or a key without the other".to_owned()),
    };
    let token = Some(status.token).filter(|token| !token.is_empty());
    if token.is_none() && pair.is_none() {
        return Err("it printed neither a token nor a certificate".to_owned());
    }
    Ok(PluginCredentials {
        token: token.map(Secret::new),
        pair,
        expires: status.expiration_timestamp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match parse(ExecVersion::V1, text.as_bytes()) {
            Ok(_) => "none".to_owned(),
            Err(problem) => problem,
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
}
