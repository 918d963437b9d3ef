//! Image references: the grammar, and the default tag.
//!
//! Source of the rule: the grammar of the distribution project's `reference` package, and the
//! kubelet's habit to append `:latest` only where neither tag nor digest is given.

use crate::container::PullPolicy;

/// Longest repository name, host included.
const MAX_NAME: usize = 255;
/// Longest tag.
const MAX_TAG: usize = 128;

/// Why a text is not an image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name {image:?}: {reason}")]
pub struct InvalidImageName {
    /// The text.
    pub image: String,
    /// What is wrong with it.
    pub reason: InvalidReference,
}

/// What is wrong with an image reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReference {
    /// Nothing is written before the tag or digest.
    #[error("the repository name is missing")]
    NoName,
    /// Upper-case letters in the path.
    #[error("the repository name must be lower-case")]
    UpperCase,
    /// A character or an arrangement that the grammar does not know.
    #[error(
        "the repository name may hold lower-case letters and digits, separated by '.', '_', '__', '-' or '/'"
    )]
    Name,
    /// The host before the first slash.
    #[error("the registry's host name or port is malformed")]
    Host,
    /// More than 255 characters.
    #[error("the repository name is longer than 255 characters")]
    TooLong,
    /// 64 hexadecimal digits would be read as an ID.
    #[error("64 hexadecimal digits are an image ID, not a name")]
    Identifier,
    /// The tag.
    #[error(
        "a tag holds up to 128 letters, digits, '_', '.' and '-', and does not begin with '.' or '-'"
    )]
    Tag,
    /// The digest.
    #[error(
        "a digest is sha256, sha384 or sha512, a colon, and 64, 96 or 128 lower-case hexadecimal digits"
    )]
    Digest,
}

/// The reference, with `:latest` appended where it has neither tag nor digest.
///
/// # Errors
/// The text is not an image reference.
pub fn with_default_tag(image: &str) -> Result<String, InvalidImageName> {
    let parts = parse(image).map_err(|reason| InvalidImageName {
        image: image.to_owned(),
        reason,
    })?;
    Ok(match (parts.tag, parts.digest) {
        (None, None) => format!("{image}:latest"),
        _ => image.to_owned(),
    })
}

/// The default pull policy: Always for the tag `latest`, explicit or by default, else IfNotPresent,
/// also for an invalid image reference.
#[must_use]
pub(crate) fn default_pull_policy(image: &str) -> PullPolicy {
    match parse(image) {
        Ok(
            Parts {
                tag: Some("latest"),
                ..
            }
            | Parts {
                tag: None,
                digest: None,
            },
        ) => PullPolicy::Always,
        _ => PullPolicy::IfNotPresent,
    }
}

struct Parts<'a> {
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

fn parse(image: &str) -> Result<Parts<'_>, InvalidReference> {
    if image.len() == 64
        && image
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    {
        return Err(InvalidReference::Identifier);
    }
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    let path_start = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[path_start..].find(':') {
        Some(colon) => (
            &named[..path_start + colon],
            Some(&named[path_start + colon + 1..]),
        ),
        None => (named, None),
    };
    check_name(name)?;
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err(InvalidReference::Tag);
    }
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Err(InvalidReference::Digest);
    }
    Ok(Parts { tag, digest })
}

fn check_name(name: &str) -> Result<(), InvalidReference> {
    let (host, path) = match name.split_once('/') {
        Some((first, rest)) if is_host_like(first) => (Some(first), rest),
        _ => (None, name),
    };
    if path.is_empty() {
        return Err(InvalidReference::NoName);
    }
    if path.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(InvalidReference::UpperCase);
    }
    if !path.split('/').all(is_path_component) {
        return Err(InvalidReference::Name);
    }
    if host.is_some_and(|host| !is_host(host)) {
        return Err(InvalidReference::Host);
    }
    if name.len() > MAX_NAME {
        return Err(InvalidReference::TooLong);
    }
    Ok(())
}

/// The first part is a host only if it can't be the begin of a path on the default registry.
fn is_host_like(first: &str) -> bool {
    first == "localhost"
        || first.contains(['.', ':'])
        || first.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_host(host: &str) -> bool {
    let (name, port) = if let Some(inner) = host.strip_prefix('[') {
        let Some((address, rest)) = inner.split_once(']') else {
            return false;
        };
        let is_address =
            !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
        match rest.strip_prefix(':') {
            _ if !is_address => return false,
            Some(port) => return is_port(port),
            None => return rest.is_empty(),
        }
    } else {
        match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        }
    };
    port.is_none_or(is_port) && name.split('.').all(is_host_label)
}

fn is_port(port: &str) -> bool {
    !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
}

fn is_host_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'-')
}

/// Runs of lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`.
fn is_path_component(component: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    if !bytes.first().copied().is_some_and(is_word) || !bytes.last().copied().is_some_and(is_word) {
        return false;
    }
    component
        .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .filter(|separator| !separator.is_empty())
        .all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|b| b == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let bytes = tag.as_bytes();
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= MAX_TAG
        && bytes.first().copied().is_some_and(is_word)
        && bytes.iter().all(|&b| is_word(b) || b == b'.' || b == b'-')
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length
        && hex
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::{InvalidReference, default_pull_policy, with_default_tag};
    use crate::container::PullPolicy;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn latest_is_appended_only_without_tag_and_digest() {
        let by_digest = format!("quay.io/a/b@{DIGEST}");
        let by_both = format!("busybox:1.36@{DIGEST}");
        for (image, expected) in [
            ("busybox", "busybox:latest"),
            ("library/busybox", "library/busybox:latest"),
            ("busybox:1.36", "busybox:1.36"),
            ("localhost:5000/a/b", "localhost:5000/a/b:latest"),
            ("localhost/a", "localhost/a:latest"),
            (
                "registry.example.com:443/a__b/c-d.e:v1_2.3-x",
                "registry.example.com:443/a__b/c-d.e:v1_2.3-x",
            ),
            ("[::1]:5000/a", "[::1]:5000/a:latest"),
            ("Registry.Example/a", "Registry.Example/a:latest"),
            ("a---b", "a---b:latest"),
            (&by_digest, &by_digest),
            (&by_both, &by_both),
        ] {
            assert_eq!(with_default_tag(image).as_deref(), Ok(expected), "{image}");
        }
    }

    #[test]
    fn an_invalid_reference_is_refused_with_its_reason() {
        use InvalidReference as R;
        let long = "a".repeat(256);
        let long_tag = format!("a:{}", "b".repeat(129));
        let upper = format!("a@{}", DIGEST.to_uppercase().replace("SHA256", "sha256"));
        for (image, reason) in [
            ("", R::NoName),
            (":v1", R::NoName),
            ("host.example/", R::NoName),
            ("BusyBox", R::UpperCase),
            ("quay.io/Team/app", R::UpperCase),
            ("a b", R::Name),
            ("/a", R::Name),
            ("a//b", R::Name),
            ("_a", R::Name),
            ("a___b", R::Name),
            ("https://quay.io/a", R::Name),
            ("-.example/a", R::Host),
            ("host.example:port/a", R::Host),
            ("a:", R::Tag),
            ("a:-b", R::Tag),
            ("a:b c", R::Tag),
            (&long_tag, R::Tag),
            ("a@", R::Digest),
            ("a@sha256:abc", R::Digest),
            ("a@md5:d41d8cd98f00b204e9800998ecf8427e", R::Digest),
            (&upper, R::Digest),
            (&long, R::TooLong),
            (&DIGEST[7..], R::Identifier),
        ] {
            let error = with_default_tag(image).expect_err(image);
            assert_eq!(error.reason, reason, "{image}");
            assert_eq!(
                error.to_string(),
                format!("couldn't parse image name {image:?}: {reason}")
            );
        }
    }

    #[test]
    fn only_latest_is_pulled_always_by_default() {
        for (image, policy) in [
            ("busybox", PullPolicy::Always),
            ("busybox:latest", PullPolicy::Always),
            (&format!("busybox:latest@{DIGEST}"), PullPolicy::Always),
            ("busybox:1", PullPolicy::IfNotPresent),
            (&format!("busybox@{DIGEST}"), PullPolicy::IfNotPresent),
            ("Not An Image", PullPolicy::IfNotPresent),
        ] {
            assert_eq!(default_pull_policy(image), policy, "{image}");
        }
    }
}
