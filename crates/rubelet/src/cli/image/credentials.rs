//! What a registry is told about who asks.

use std::io::Read as _;

use anyhow::Context as _;
use rubelet_cri::v1;

use crate::cli::failure::Failure;

/// Name and password for the registry
#[derive(Debug, Clone, clap::Args)]
pub(super) struct CredentialArgs {
    /// User name at the registry; the password comes with --password-stdin
    #[arg(short, long, value_name = "NAME", requires = "password_stdin")]
    username: Option<String>,
    /// Read the password from stdin, so that no list of processes shows it
    #[arg(long, requires = "username")]
    password_stdin: bool,
}

impl CredentialArgs {
    /// The credentials, if there are any.
    pub(super) fn read(&self) -> Result<Option<v1::AuthConfig>, Failure> {
        let Some(username) = self.username.clone() else {
            return Ok(None);
        };
        let mut password = String::new();
        std::io::stdin()
            .read_to_string(&mut password)
            .context("cannot read the password from stdin")?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        if password.is_empty() {
            let message = "the password on stdin is empty".to_owned();
            return Err(Failure::Usage(message));
        }
        Ok(Some(v1::AuthConfig {
            username,
            password,
            ..Default::default()
        }))
    }
}
