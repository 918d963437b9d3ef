//! Encrypted records: AES-256-GCM, with a fresh random nonce for each write.
//!
//! ```text
//! rubelet-sealed KIND VERSION KEY
//! base64 of nonce, ciphertext and tag
//! ```
//!
//! The first line and the record's name are authenticated with the content: a record that replaces
//! another one does not open. KEY identifies the key without revealing it, so that a wrong key is
//! distinguished from a corrupt file.

use std::{fmt, sync::Arc};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    error::Unspecified,
    hmac,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    Damage, Stored,
    envelope::{self, decode},
};

const MAGIC: &str = "rubelet-sealed";
/// The name of a key is derived from this text and the key.
const KEY_NAME: &[u8] = b"rubelet record key name 1";

/// A key for records. Its value can't be read or printed. With 2^32 writes per key, the chance of a
/// repeated nonce stays below one in 2^32 (NIST SP 800-38D, section 8.3).
pub struct SealKey {
    key: RandomizedNonceKey,
    /// Identifies the key.
    name: String,
}

impl SealKey {
    /// Bytes of a key.
    pub const LEN: usize = 32;

    /// The key with these bytes.
    ///
    /// # Errors
    /// The cryptography library fails, in practice for lack of memory.
    pub(crate) fn new(bytes: &[u8; Self::LEN]) -> Result<Self, Unspecified> {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), KEY_NAME);
        Ok(Self {
            key: RandomizedNonceKey::new(&AES_256_GCM, bytes)?,
            name: hex::encode(&tag.as_ref()[..8]),
        })
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SealKey").field(&self.name).finish()
    }
}

/// The encryption of one record.
#[derive(Debug, Clone)]
pub struct Seal {
    /// The key.
    pub key: Arc<SealKey>,
    /// The name that the record is bound to. It does not open for any other.
    pub bound_to: String,
}

/// The file's bytes for a value; `None` if `old` already has the same value.
pub(crate) fn seal<T: Stored>(
    value: &T,
    seal: &Seal,
    old: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let json = serde_json::to_string(value)?;
    let same = |old: &[u8]| {
        let opened = unseal(old, seal);
        opened.is_ok_and(|old| old.kind == T::KIND && old.version == T::VERSION && old.json == json)
    };
    if old.is_some_and(same) {
        return Ok(None);
    }
    let header = header(T::KIND, T::VERSION, &seal.key.name);
    let mut text = json.into_bytes();
    let nonce = seal
        .key
        .key
        .seal_in_place_append_tag(aad(&header, &seal.bound_to), &mut text)
        .map_err(|Unspecified| serde::ser::Error::custom("encryption failed"))?;
    let mut content = nonce.as_ref().to_vec();
    content.append(&mut text);
    let content = STANDARD.encode(content);
    Ok(Some(format!("{header}\n{content}\n").into_bytes()))
}

/// The value in a file's bytes.
pub(crate) fn open<T: Stored>(bytes: &[u8], seal: &Seal) -> Result<T, Damage> {
    let opened = unseal(bytes, seal)?;
    decode(opened.kind, opened.version, &opened.json)
}

/// The content of a file.
struct Opened<'a> {
    kind: &'a str,
    version: usize,
    json: String,
}

fn unseal<'a>(bytes: &'a [u8], seal: &Seal) -> Result<Opened<'a>, Damage> {
    let form = || Damage::Form("not an encrypted record");
    let text = std::str::from_utf8(bytes).map_err(|_| form())?;
    if text.starts_with(envelope::MAGIC) {
        return Err(Damage::NotEncrypted);
    }
    let (header, content) = text.split_once('\n').ok_or_else(form)?;
    let content = content.strip_suffix('\n').ok_or_else(form)?;
    let mut words = header.split(' ');
    let [Some(MAGIC), Some(kind), Some(version), Some(key), None] = [(); 5].map(|()| words.next())
    else {
        return Err(form());
    };
    let version: usize = version.parse().map_err(|_| form())?;
    if key != seal.key.name {
        return Err(Damage::OtherKey);
    }
    let mut content = STANDARD.decode(content).map_err(|_| form())?;
    if version == 0 || content.len() < NONCE_LEN {
        return Err(form());
    }
    let mut text = content.split_off(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(&content).map_err(|Unspecified| form())?;
    let opened = seal
        .key
        .key
        .open_in_place(nonce, aad(header, &seal.bound_to), &mut text);
    let length = opened.map_err(|Unspecified| Damage::NotAuthentic)?.len();
    text.truncate(length);
    let json = String::from_utf8(text).map_err(|_| form())?;
    Ok(Opened {
        kind,
        version,
        json,
    })
}

fn header(kind: &str, version: usize, key: &str) -> String {
    format!("{MAGIC} {kind} {version} {key}")
}

/// A header has no line break, so no other pair of texts gives the same bytes.
fn aad(header: &str, bound_to: &str) -> Aad<Vec<u8>> {
    Aad::from(format!("{header}\n{bound_to}").into_bytes())
}

#[cfg(test)]
mod tests;
