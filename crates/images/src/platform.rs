//! For which machine an image is, and which of an index's images fits this one best.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Operating system and processor, in Go's names as OCI uses them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Platform {
    /// Operating system: `linux`.
    pub os: String,
    /// Processor: `amd64`, `arm64`, `arm`, ….
    pub architecture: String,
    /// Variant of the processor: `v8`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub variant: String,
}

impl Default for Platform {
    /// Nothing is said.
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

    /// What this program runs on.
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

    /// How well an image for `image` runs on `self`: more is better, `None` is not at all. Empty
    /// fields of an image say nothing and fit, though worse than fields that say the right thing.
    #[must_use]
    pub fn fit(&self, image: &Self) -> Option<u32> {
        const NATIVE: u32 = 1000;
        const FOREIGN: u32 = 100;
        let os = match image.os.as_str() {
            "" => 0,
            os if os == self.os => 10_000,
            _ => return None,
        };
        // A variant that is higher than the machine's would crash.
        let level = |base: u32, has: u32, wants: u32| (wants <= has).then_some(base + wants);
        let (has, wants) = (self.variant.as_str(), image.variant.as_str());
        let processor = match (self.architecture.as_str(), image.architecture.as_str()) {
            (_, "") => 0,
            // Levels of the psABI.
            ("amd64", "amd64") => level(NATIVE, version(has, 1)?, version(wants, 1)?)?,
            ("arm64", "arm64") => level(NATIVE, version(has, 8)?, version(wants, 8)?)?,
            ("arm", "arm") => level(NATIVE, version(has, 7)?, version(wants, 7)?)?,
            // The kernels of 64 bits run programs of 32.
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

/// The number of a variant such as `v8`; `silent` where nothing is said.
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

/// A text that names no platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no platform; write OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT, such as linux/arm64"
)]
pub struct PlatformError(String);

impl FromStr for Platform {
    type Err = PlatformError;

    /// `os/architecture[/variant]`; the kernel's names of processors count, too.
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
mod tests {
    use super::*;

    fn best(
        host: (&str, &str),
        images: &[(&'static str, &'static str)],
    ) -> Option<(&'static str, &'static str)> {
        let host = Platform::new("linux", host.0, host.1);
        let fit = |(architecture, variant): &(&str, &str)| {
            host.fit(&Platform::new("linux", architecture, variant))
        };
        let fitting = images.iter().filter_map(|image| Some((fit(image)?, image)));
        fitting.max_by_key(|(fit, _)| *fit).map(|(_, image)| *image)
    }

    #[test]
    fn the_best_image_that_runs_is_chosen() {
        let levels = [
            ("amd64", ""),
            ("amd64", "v2"),
            ("amd64", "v3"),
            ("386", ""),
            ("arm64", "v8"),
        ];
        assert_eq!(best(("amd64", "v1"), &levels), Some(("amd64", "")));
        assert_eq!(best(("amd64", "v2"), &levels), Some(("amd64", "v2")));
        assert_eq!(best(("amd64", "v4"), &levels), Some(("amd64", "v3")));
        assert_eq!(best(("arm64", "v8"), &levels), Some(("arm64", "v8")));
        assert_eq!(
            best(("amd64", "v1"), &[("386", ""), ("arm", "v7")]),
            Some(("386", ""))
        );
        assert_eq!(
            best(("arm64", "v8"), &[("arm", "v6"), ("arm", "v7")]),
            Some(("arm", "v7"))
        );
        assert_eq!(best(("arm64", "v8"), &[("arm64", "v9")]), None);
        assert_eq!(
            best(("amd64", "v1"), &[("amd64", "v3"), ("s390x", "")]),
            None
        );
        assert_eq!(
            best(("riscv64", ""), &[("riscv64", "")]),
            Some(("riscv64", ""))
        );
    }

    #[test]
    fn platforms_are_read_as_they_are_written() {
        for (text, platform) in [
            ("linux/arm64", Platform::new("linux", "arm64", "")),
            ("linux/arm/v7", Platform::new("linux", "arm", "v7")),
            ("linux/x86_64", Platform::new("linux", "amd64", "")),
        ] {
            assert_eq!(text.parse::<Platform>(), Ok(platform));
        }
        for text in [
            "",
            "arm64",
            "linux/",
            "/arm64",
            "linux/arm/v7/x",
            "linux/arm/",
            "a b/c",
        ] {
            assert!(text.parse::<Platform>().is_err(), "{text}");
        }
    }

    #[test]
    fn another_system_never_fits_and_silence_fits_worst() {
        let host = Platform::host();
        assert_eq!(
            host.fit(&Platform {
                os: "windows".into(),
                ..host.clone()
            }),
            None
        );
        assert_eq!(host.fit(&Platform::new("unknown", "unknown", "")), None);
        let silent = host.fit(&Platform::default()).unwrap();
        assert!(host.fit(&host).unwrap() > silent);
        let old = Platform {
            variant: String::new(),
            ..host.clone()
        };
        assert!(host.fit(&old).unwrap() > silent);
    }
}
