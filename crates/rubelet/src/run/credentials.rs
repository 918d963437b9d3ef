//! Credential provider plugins for registries, as `--image-credential-provider-config` names them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use rubelet_base::ErrorChain;
use rubelet_config::{Flags, Resolved, merge_credential_providers, parse_credential_providers};
use rubelet_image_pull::node_logins::{CredentialPlugins, config_hash};
use rubelet_node_state::metrics::NodeMetrics;
use tracing::warn;

/// File extensions that count in a directory.
const FORMS: [&str; 3] = ["json", "yaml", "yml"];

/// The feature gate of `tokenAttributes`.
const TOKENS: &str = "KubeletServiceAccountTokenForCredentialProviders";

/// Reads the configuration, and finds the programs; `None` without the flags.
///
/// # Errors
/// A file can't be read or is invalid, a program is missing, or one flag is given without the
/// other.
pub(super) fn plugins(
    flags: &Flags,
    resolved: &Resolved,
    metrics: &Arc<NodeMetrics>,
) -> anyhow::Result<Option<CredentialPlugins>> {
    let (path, directory) = match flags.image_credential_provider() {
        (None, None) => return Ok(None),
        (Some(path), Some(directory)) => (path, directory),
        _ => bail!(
            "--image-credential-provider-config and --image-credential-provider-bin-dir must be set together"
        ),
    };
    let flag = || format!("--image-credential-provider-config {path}");
    let (mut read, mut texts) = (Vec::new(), Vec::new());
    for file in files(Path::new(path)).with_context(flag)? {
        let shown = || format!("{}: {}", flag(), file.display());
        let text = fs::read_to_string(&file).with_context(shown)?;
        let found = parse_credential_providers(&text, resolved.gates.enabled(TOKENS));
        read.push(found.map_err(|error| anyhow::anyhow!("{}: {error}", shown()))?);
        texts.push(text);
    }
    let providers =
        merge_credential_providers(read).map_err(|error| anyhow::anyhow!("{}: {error}", flag()))?;
    let plugins = CredentialPlugins::new(providers, Path::new(directory), metrics);
    let plugins = plugins.map_err(|error| {
        anyhow::anyhow!(
            "--image-credential-provider-bin-dir: {}",
            ErrorChain(&error)
        )
    })?;
    metrics.facts.set_credential_providers(&config_hash(&texts));
    let unused = plugins.only_for_accounts();
    if !resolved.joined && !unused.is_empty() {
        warn!(
            plugins = unused.join(", "),
            "Credential plugins with requireServiceAccount: true are never run: without an API server, pods have no service account"
        );
    }
    Ok(Some(plugins))
}

/// The file itself, or those of a directory, ordered by name.
fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let form = path.extension().and_then(|form| form.to_str());
        if form.is_some_and(|form| FORMS.contains(&form)) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
