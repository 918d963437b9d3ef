//! Digests: the content-derived names of blobs.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest as hash;
use serde::{Deserialize, Serialize, de};

/// An algorithm that OCI registers and registries use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, the usual one.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// Its name in digests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    fn hash(self) -> &'static hash::Algorithm {
        match self {
            Self::Sha256 => &hash::SHA256,
            Self::Sha512 => &hash::SHA512,
        }
    }
}

/// A digest, such as `sha256:9f86…`. Its text is safe as part of a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    /// Lower-case hexadecimal digits, as many as the algorithm has.
    hex: Box<str>,
}

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The form is wrong.
    #[error("invalid digest {0:?}: expected sha256: and 64 hexadecimal digits")]
    Form(String),
    /// The algorithm is not supported.
    #[error("unsupported digest algorithm {0:?}; use sha256 or sha512")]
    Algorithm(String),
}

impl Digest {
    /// The digest of `bytes` by SHA-256.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Reports whether `bytes` have this digest.
    #[must_use]
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        let mut hasher = Hasher::new(self.algorithm);
        hasher.update(bytes);
        hasher.finish() == *self
    }

    /// Its algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Its file name: without the colon.
    pub(crate) fn file_name(&self) -> String {
        format!("{}-{}", self.algorithm.name(), self.hex)
    }

    /// The digest whose [`file_name`](Self::file_name) this is.
    pub(crate) fn from_file_name(name: &str) -> Option<Self> {
        let (algorithm, hex) = name.split_once('-')?;
        format!("{algorithm}:{hex}").parse().ok()
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let form = || DigestError::Form(text.chars().take(150).collect());
        let (algorithm, hex) = text.split_once(':').ok_or_else(form)?;
        let algorithm = match algorithm {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            other if !other.is_empty() && other.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                return Err(DigestError::Algorithm(other.chars().take(32).collect()));
            }
            _ => return Err(form()),
        };
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() != algorithm.hex_length() || !hex.bytes().all(is_digit) {
            return Err(form());
        }
        let hex = hex.into();
        Ok(Self { algorithm, hex })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// Hashes content that arrives in chunks.
pub struct Hasher {
    algorithm: Algorithm,
    context: hash::Context,
}

impl Hasher {
    /// A hasher without content.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            context: hash::Context::new(algorithm.hash()),
        }
    }

    /// Adds the next chunk.
    pub fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// The digest of all chunks.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest {
            algorithm: self.algorithm,
            hex: hex::encode(self.context.finish()).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        let parsed: Digest = empty.parse().unwrap();
        assert!(parsed.is_of(b"") && !parsed.is_of(b"x"));
        assert_eq!(Digest::from_file_name(&parsed.file_name()), Some(parsed));
        let long: Digest = format!("sha512:{}", "0".repeat(128)).parse().unwrap();
        assert!(!long.is_of(b""));
    }

    #[test]
    fn an_invalid_digest_is_refused() {
        for text in [
            "",
            "sha256",
            "sha256:",
            "sha256:../../etc",
            ":",
            "md5:d41d8cd98f00b204e9800998ecf8427e",
            "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
            "sha512:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "/:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
