//! Platforms, and the selection of the best image of an index.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Operating system and architecture, in Go's names as OCI uses them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Platform {
    /// Operating system: `linux`.
    pub os: String,
    /// Architecture: `amd64`, `arm64`, `arm`, ….
    pub architecture: String,
    /// Variant of the architecture: `v8`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub variant: String,
}

impl Default for Platform {
    /// No platform specified.
    fn default() -> Self {
        Self {
            os: String::new(),
            architecture: String::new(),
            variant: String::new(),
        }
    }
}

impl Platform {
    /// A platform with these names.
    #[must_use]
    pub fn new(os: &str, architecture: &str, variant: &str) -> Self {
        Self {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.to_owned(),
        }
    }

    /// The platform of this program.
    #[must_use]
    pub fn host() -> Self {
        let (architecture, variant) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", x86_level()),
            "aarch64" => ("arm64", "v8"),
            "arm" => ("arm", "v7"),
            "x86" => ("386", ""),
            "powerpc64" => ("ppc64le", ""),
            other => (other, ""),
        };
        Self::new("linux", architecture, variant)
    }

    /// Rates how well an image for `image` runs on `self`: higher is better, `None` means not at
    /// all. Empty fields of an image match anything, but rank below fields that match exactly.
    #[must_use]
    pub fn fit(&self, image: &Self) -> Option<u32> {
        const NATIVE: u32 = 1000;
        const FOREIGN: u32 = 100;
        let os = match image.os.as_str() {
            "" => 0,
            os if os == self.os => 10_000,
            _ => return None,
        };
        // A variant that is newer than the machine's would crash.
        let level = |base: u32, has: u32, wants: u32| (wants <= has).then_some(base + wants);
        let (has, wants) = (self.variant.as_str(), image.variant.as_str());
        let processor = match (self.architecture.as_str(), image.architecture.as_str()) {
            (_, "") => 0,
            // Levels of the psABI.
            ("amd64", "amd64") => level(NATIVE, version(has, 1)?, version(wants, 1)?)?,
            ("arm64", "arm64") => level(NATIVE, version(has, 8)?, version(wants, 8)?)?,
            ("arm", "arm") => level(NATIVE, version(has, 7)?, version(wants, 7)?)?,
            // 64-bit kernels run 32-bit programs.
            ("arm64", "arm") => level(FOREIGN, 8, version(wants, 7)?)?,
            ("amd64", "386") => FOREIGN,
            (has, wants) if has == wants => {
                NATIVE + u32::from(!image.variant.is_empty() && image.variant == self.variant)
            }
            _ => return None,
        };
        Some(os + processor)
    }
}

/// The number of a variant such as `v8`; `silent` if it is empty.
fn version(variant: &str, silent: u32) -> Option<u32> {
    if variant.is_empty() {
        return Some(silent);
    }
    variant.strip_prefix('v')?.parse().ok()
}

#[cfg(target_arch = "x86_64")]
fn x86_level() -> &'static str {
    macro_rules! has {
        ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
    }
    if !has!("cmpxchg16b", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3") {
        "v1"
    } else if !has!(
        "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe"
    ) {
        "v2"
    } else if !has!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl") {
        "v3"
    } else {
        "v4"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn x86_level() -> &'static str {
    ""
}

/// An invalid platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid platform {0:?}: write OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT, such as linux/arm64"
)]
pub struct PlatformError(String);

impl FromStr for Platform {
    type Err = PlatformError;

    /// `os/architecture[/variant]`; the kernel's names of architectures are accepted, too.
    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let wrong = || PlatformError(text.to_owned());
        let is_word = |word: &&str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        let words: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match words[..] {
            [os, architecture] => (os, architecture, ""),
            [os, architecture, variant] if is_word(&variant) => (os, architecture, variant),
            _ => return Err(wrong()),
        };
        if ![os, architecture].iter().all(is_word) {
            return Err(wrong());
        }
        let architecture = match architecture {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "i386" => "386",
            other => other,
        };
        Ok(Self::new(os, architecture, variant))
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |text| if str::is_empty(text) { "unknown" } else { text };
        write!(f, "{}/{}", known(&self.os), known(&self.architecture))?;
        if self.variant.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.variant)
    }
}

#[cfg(test)]
mod tests;
