//! Registry credentials of the node, which all its pods may use: from files and plugins.

mod plugins;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_api::pod::Pod;
use rubelet_base::ErrorChain;
use rubelet_node_state::{
    keyring::{InvalidLogins, Keyring, PullLogin},
    objects::ServiceAccounts,
};
use tracing::warn;

pub use self::plugins::{CredentialPlugins, PluginSetupError, config_hash};

/// Paths of the node's credentials, in upstream's order: only the first readable file is used, and
/// the older format only if no file of the newer one exists.
#[derive(Debug, Clone, Default)]
pub struct NodeLogins {
    config: Vec<PathBuf>,
    dockercfg: Vec<PathBuf>,
    plugins: Option<Arc<CredentialPlugins>>,
}

impl NodeLogins {
    /// Upstream's paths: `--root-dir`, the working directory, the home directory and the root of
    /// the file system.
    #[must_use]
    pub fn of_kubelet(root_dir: &Path, home: Option<&Path>) -> Self {
        let home = home.unwrap_or_else(|| Path::new(""));
        let (here, top) = (Path::new(""), Path::new("/"));
        Self {
            config: [root_dir, here, &home.join(".docker"), &top.join(".docker")]
                .map(|directory| directory.join("config.json"))
                .into(),
            dockercfg: [root_dir, here, home, top]
                .map(|directory| directory.join(".dockercfg"))
                .into(),
            plugins: None,
        }
    }

    /// Adds the credentials of plugins after those of files.
    #[must_use]
    pub fn with_plugins(self, plugins: Option<CredentialPlugins>) -> Self {
        Self {
            plugins: plugins.map(Arc::new),
            ..self
        }
    }

    /// The credentials that plugins provide for an image of this pod.
    pub(crate) async fn of_plugins(
        &self,
        image: &str,
        pod: &Pod,
        accounts: &dyn ServiceAccounts,
    ) -> Vec<PullLogin> {
        match &self.plugins {
            Some(plugins) => plugins.lookup(image, pod, accounts).await,
            None => Vec::new(),
        }
    }

    /// Reads the files. Blocks.
    #[must_use]
    pub fn read(&self) -> Keyring {
        let mut ring = Keyring::default();
        let newer = |path: &PathBuf, ring: &mut Keyring, content: &[u8]| {
            told(path, ring.add_config(content))
        };
        let older = |path: &PathBuf, ring: &mut Keyring, content: &[u8]| {
            told(path, ring.add_dockercfg(content))
        };
        let _found =
            first(&self.config, &mut ring, newer) || first(&self.dockercfg, &mut ring, older);
        ring
    }
}

/// Adds the first valid file; true if there is one.
fn first(
    paths: &[PathBuf],
    ring: &mut Keyring,
    add: impl Fn(&PathBuf, &mut Keyring, &[u8]) -> bool,
) -> bool {
    paths.iter().any(|path| match fs::read(path) {
        Ok(content) => add(path, ring, &content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => {
            warn!(file = %path.display(), %error, "Cannot read registry credentials");
            false
        }
    })
}

fn told(path: &Path, added: Result<(), InvalidLogins>) -> bool {
    if let Err(error) = &added {
        warn!(file = %path.display(), error = %ErrorChain(error), "Ignoring invalid registry credentials");
    }
    added.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_that_can_be_read_counts() {
        let directory = tempfile::tempdir().unwrap();
        let (root, home) = (directory.path().join("root"), directory.path().join("home"));
        for made in [&root, &home.join(".docker")] {
            fs::create_dir_all(made).unwrap();
        }
        let logins = NodeLogins::of_kubelet(&root, Some(&home));
        let user = || {
            let found = logins.read().lookup("r.io/app:1");
            found.first().map(|auth| auth.username.clone())
        };
        assert_eq!(user(), None);
        let entry = |user: &str| format!(r#""r.io": {{"username": "{user}"}}"#);
        fs::write(home.join(".dockercfg"), format!("{{{}}}", entry("old"))).unwrap();
        assert_eq!(user().as_deref(), Some("old"));
        let config = |user| format!(r#"{{"auths": {{{}}}}}"#, entry(user));
        fs::write(home.join(".docker/config.json"), config("home")).unwrap();
        assert_eq!(user().as_deref(), Some("home"));
        fs::write(root.join("config.json"), config("root")).unwrap();
        assert_eq!(user().as_deref(), Some("root"));
        fs::write(root.join("config.json"), "broken").unwrap();
        assert_eq!(user().as_deref(), Some("home"));
    }
}
