//! Credentials for registries.

use std::{fs, io::Read as _, path::PathBuf};

use anyhow::{Context as _, anyhow};
use rubelet_cri::v1;
use rubelet_images::Reference;
use rubelet_node_state::keyring::Keyring;
use serde::Deserialize;

use crate::failure::CommandError;

/// Name and password for the registry
#[derive(Debug, Clone, clap::Args)]
pub(super) struct CredentialArgs {
    /// User name for the registry; needs --password-stdin
    #[arg(short, long, value_name = "NAME", requires = "password_stdin")]
    username: Option<String>,
    /// Read the password from stdin
    #[arg(long, requires = "username")]
    password_stdin: bool,
    /// User name and password at the registry; lists of processes show them, --password-stdin not
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with = "username")]
    creds: Option<String>,
    /// File with logins for registries, as docker (config.json) and podman (auth.json) write it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["username", "creds"])]
    authfile: Option<PathBuf>,
}

/// The credentials to use.
pub(super) enum Logins {
    /// None.
    Nobody,
    /// The same for all registries.
    One(v1::AuthConfig),
    /// Credentials of a file, by image.
    File(Box<AuthFile>),
}

/// A file of logins.
pub(super) struct AuthFile {
    path: PathBuf,
    logins: Keyring,
    helpers: CredentialHelpers,
}

/// Credential helpers, which store passwords instead of the file.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CredentialHelpers {
    creds_store: Option<String>,
    cred_helpers: Option<std::collections::BTreeMap<String, String>>,
}

impl CredentialArgs {
    /// Reads the credentials, if there are any.
    pub(super) fn read(&self) -> Result<Logins, CommandError> {
        if let Some(path) = &self.authfile {
            return Ok(Logins::File(Box::new(AuthFile::read(path.clone())?)));
        }
        if let Some(creds) = &self.creds {
            let (username, password) = creds.split_once(':').ok_or_else(|| {
                let message = "--creds must be USER:PASSWORD; --username with --password-stdin \
                               reads the password from stdin";
                CommandError::Usage(message.to_owned())
            })?;
            return one(
                username,
                password,
                "--creds has an empty user name or password",
            );
        }
        let Some(username) = &self.username else {
            return Ok(Logins::Nobody);
        };
        let mut password = String::new();
        std::io::stdin()
            .read_to_string(&mut password)
            .context("cannot read the password from stdin")?;
        let password = password.trim_end_matches(['\r', '\n']);
        one(username, password, "the password on stdin is empty")
    }
}

fn one(username: &str, password: &str, empty: &str) -> Result<Logins, CommandError> {
    if username.is_empty() || password.is_empty() {
        return Err(CommandError::Usage(empty.to_owned()));
    }
    Ok(Logins::One(v1::AuthConfig {
        username: username.to_owned(),
        password: password.to_owned(),
        ..Default::default()
    }))
}

impl Logins {
    /// The credentials for the registry of an image.
    pub(super) fn of(&self, image: &str) -> Result<Option<v1::AuthConfig>, CommandError> {
        match self {
            Self::Nobody => Ok(None),
            Self::One(login) => Ok(Some(login.clone())),
            Self::File(file) => file.of(image),
        }
    }
}

impl AuthFile {
    fn read(path: PathBuf) -> Result<Self, CommandError> {
        let unreadable = || format!("cannot read the logins in {}", path.display());
        let content = fs::read(&path).with_context(unreadable)?;
        let mut logins = Keyring::default();
        logins.add_config(&content).with_context(unreadable)?;
        Ok(Self {
            logins,
            helpers: serde_json::from_slice(&content).unwrap_or_default(),
            path,
        })
    }

    /// The login of the best matching registry. Without one the pull is anonymous, as in podman.
    fn of(&self, image: &str) -> Result<Option<v1::AuthConfig>, CommandError> {
        let place = self.path.display();
        let found = self.logins.lookup(image).into_iter().next();
        if let Some(login) = found.filter(|login| !login.username.is_empty()) {
            if login.password.is_empty() {
                let message = format!(
                    "the login for {image:?} in {place} has no password; tokens and programs that \
                     keep passwords cannot be used"
                );
                return Err(anyhow!(message).into());
            }
            return Ok(Some(login));
        }
        let registry = image.parse::<Reference>();
        let registry = registry.map_or_else(|_| String::new(), |image| image.registry().to_owned());
        let helpers = self.helpers.cred_helpers.as_ref();
        let helper = helpers.and_then(|helpers| helpers.get(&registry));
        let helper = helper.or(self.helpers.creds_store.as_ref());
        match helper.filter(|helper| !helper.is_empty()) {
            None => Ok(None),
            Some(helper) => Err(anyhow!(
                "{place} leaves the password for {registry} to the program \
                 docker-credential-{helper}, which is not run; give it with --password-stdin"
            )
            .into()),
        }
    }
}
