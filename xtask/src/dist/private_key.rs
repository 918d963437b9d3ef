//! The Ed25519 key that signs a release, from an OpenSSH or PKCS #8 file.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// OpenSSH's name of Ed25519.
pub(super) const KEY_TYPE: &[u8] = b"ssh-ed25519";
/// Maximum size of a key file.
const MOST_BYTES: u64 = 64 * 1024;
/// Magic of OpenSSH's private keys.
const OPENSSH_MAGIC: &[u8] = b"openssh-key-v1\0";

/// A private key. It is never printed.
pub(super) struct PrivateKey(Ed25519KeyPair);

impl PrivateKey {
    /// Reads the key at `path`.
    ///
    /// # Errors
    ///
    /// Other users may read the file, or it contains no such key, or one with a passphrase.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let read = || -> Result<String> {
            let file = File::open(path)?;
            // Of the open file, so that the checked file is the one that is read.
            let about = file.metadata()?;
            ensure!(about.is_file(), "it is not a file");
            let mode = about.permissions().mode() & 0o777;
            ensure!(
                mode & 0o077 == 0,
                "users other than its owner may access it (mode {mode:04o}); run `chmod 600 {shown}`"
            );
            let mut text = String::new();
            file.take(MOST_BYTES).read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().with_context(|| format!("cannot use the key {shown}"))?;
        Self::parse(&text).with_context(|| format!("cannot use the key {shown}"))
    }

    fn parse(text: &str) -> Result<Self> {
        if let Some(bytes) = pem(text, "OPENSSH PRIVATE KEY")? {
            return openssh(&bytes).map(Self);
        }
        if let Some(bytes) = pem(text, "PRIVATE KEY")? {
            let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&bytes);
            return key.map(Self).ok().context("it is not an Ed25519 key");
        }
        ensure!(
            !text.contains("ENCRYPTED PRIVATE KEY"),
            "it has a passphrase; use a key without one"
        );
        bail!("it contains no private key in OpenSSH or PKCS #8 (PEM) format")
    }

    /// The public key's 32 bytes.
    pub(super) fn public(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    /// Signs a message; 64 bytes.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

/// The content of the PEM block of this type, if there is one.
fn pem(text: &str, kind: &str) -> Result<Option<Vec<u8>>> {
    let (begin, end) = (
        format!("-----BEGIN {kind}-----"),
        format!("-----END {kind}-----"),
    );
    let Some((_, rest)) = text.split_once(&begin) else {
        return Ok(None);
    };
    let (body, _) = rest
        .split_once(&end)
        .with_context(|| format!("`{end}` is missing"))?;
    let body: String = body.split_whitespace().collect();
    let bytes = STANDARD.decode(body).context("it is damaged")?;
    Ok(Some(bytes))
}

/// Parses OpenSSH's format (PROTOCOL.key of openssh-portable).
fn openssh(bytes: &[u8]) -> Result<Ed25519KeyPair> {
    let damaged = "it is damaged";
    let mut rest = bytes.strip_prefix(OPENSSH_MAGIC).context(damaged)?;
    let cipher = string(&mut rest).context(damaged)?;
    let derivation = string(&mut rest).context(damaged)?;
    string(&mut rest).context(damaged)?;
    ensure!(
        cipher == b"none" && derivation == b"none",
        "it has a passphrase; use a key without one"
    );
    ensure!(number(&mut rest) == Some(1), "it holds not exactly one key");
    string(&mut rest).context(damaged)?;
    let mut private = string(&mut rest).context(damaged)?;
    // Two equal numbers verify the passphrase.
    let checks = (number(&mut private), number(&mut private));
    ensure!(checks.0.is_some() && checks.0 == checks.1, damaged);
    let kind = string(&mut private).context(damaged)?;
    ensure!(
        kind == KEY_TYPE,
        "it is a key of type {}, not {}",
        String::from_utf8_lossy(kind),
        String::from_utf8_lossy(KEY_TYPE)
    );
    let public = string(&mut private).context(damaged)?;
    // The seed, then the public key again.
    let seed = string(&mut private)
        .filter(|both| both.len() == 64)
        .context(damaged)?;
    Ed25519KeyPair::from_seed_and_public_key(&seed[..32], public)
        .ok()
        .context("its public key does not match its private key")
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_be_bytes(*head))
}

fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

#[cfg(test)]
mod tests;
