//! Registry credentials and their lookup for an image.
//!
//! Source of the rules: `pkg/credentialprovider` of Kubernetes 1.36.

mod login;

use std::collections::BTreeMap;

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use rubelet_api::objects::Secret;
use rubelet_cri::v1::AuthConfig;
use serde::Deserialize;

pub use login::{LoginSource, PullLogin};

/// Type of secrets with a `.docker/config.json`.
const JSON_TYPE: &str = "kubernetes.io/dockerconfigjson";
const JSON_KEY: &str = ".dockerconfigjson";
/// Type of secrets with a `.dockercfg`, the older format.
const OLD_TYPE: &str = "kubernetes.io/dockercfg";
const OLD_KEY: &str = ".dockercfg";
/// The registry of images without a host, as credentials name it.
const DEFAULT_REGISTRY: &str = "index.docker.io";

/// Base64 as registry tools write it, with or without padding.
const AUTH: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Credentials by registry: a host, optionally with globs, a port and a path prefix.
#[derive(Default)]
pub struct Keyring {
    registries: BTreeMap<String, Vec<Login>>,
}

#[derive(Clone, PartialEq)]
struct Login {
    username: String,
    password: String,
}

/// A secret or file without valid credentials. Its contents are never shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLogins {
    /// Not the JSON of such a file.
    #[error("not valid JSON of registry credentials")]
    Json,
    /// The field `auth`.
    #[error("a field `auth` is not base64 of <user>:<password>")]
    Auth,
}

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default)]
    auths: Option<BTreeMap<String, Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    auth: Option<String>,
}

impl Keyring {
    /// Adds the credentials of a secret; none if it is not a pull secret.
    ///
    /// # Errors
    /// It is an invalid pull secret. Nothing was added.
    pub fn add_secret(&mut self, secret: &Secret) -> Result<(), InvalidLogins> {
        let content = |key| secret.data.get(key).filter(|data| !data.is_empty());
        match &*secret.kind {
            JSON_TYPE => content(JSON_KEY).map_or(Ok(()), |data| self.add_config(data)),
            OLD_TYPE => content(OLD_KEY).map_or(Ok(()), |data| self.add_dockercfg(data)),
            _ => Ok(()),
        }
    }

    /// Adds the logins of a `config.json`.
    ///
    /// # Errors
    /// It is invalid. Nothing was added.
    pub fn add_config(&mut self, content: &[u8]) -> Result<(), InvalidLogins> {
        let file: ConfigFile = serde_json::from_slice(content).map_err(|_| InvalidLogins::Json)?;
        self.add(file.auths.unwrap_or_default())
    }

    /// Adds the logins of a `.dockercfg`.
    ///
    /// # Errors
    /// It is invalid. Nothing was added.
    pub fn add_dockercfg(&mut self, content: &[u8]) -> Result<(), InvalidLogins> {
        self.add(serde_json::from_slice(content).map_err(|_| InvalidLogins::Json)?)
    }

    /// Adds a login for a registry; ignored if the registry has no host.
    pub fn add_login(&mut self, registry: &str, username: &str, password: &str) {
        self.add_one(
            registry,
            Login {
                username: username.to_owned(),
                password: password.to_owned(),
            },
        );
    }

    fn add(&mut self, entries: BTreeMap<String, Entry>) -> Result<(), InvalidLogins> {
        let logins: Result<Vec<_>, _> = entries
            .into_iter()
            .map(|(registry, entry)| Ok((registry, entry.login()?)))
            .collect();
        for (registry, login) in logins? {
            self.add_one(&registry, login);
        }
        Ok(())
    }

    fn add_one(&mut self, registry: &str, login: Login) {
        if let Some(key) = registry_key(registry) {
            self.registries.entry(key).or_default().push(login);
        }
    }

    /// The credentials for an image, the most specific registry first. `image` may have a tag or
    /// digest.
    #[must_use]
    pub fn lookup(&self, image: &str) -> Vec<AuthConfig> {
        let found = self.lookup_with_registries(image).into_iter();
        found.map(|(_, auth)| auth).collect()
    }

    /// As [`Self::lookup`], each with its registry. Credentials for images without a host have an
    /// empty registry: they are used if nothing else matches.
    #[must_use]
    pub fn lookup_with_registries(&self, image: &str) -> Vec<(String, AuthConfig)> {
        let repository = repository(image);
        let mut found: Vec<(&str, &Login)> = Vec::new();
        for (registry, logins) in self.registries.iter().rev() {
            if matches_registry(registry, &repository) {
                found.extend(logins.iter().map(|login| (&**registry, login)));
            }
        }
        if found.is_empty() && repository.starts_with("docker.io/") {
            let logins = self.registries.get(DEFAULT_REGISTRY).into_iter().flatten();
            found.extend(logins.map(|login| ("", login)));
        }
        let auth = |login: &Login| AuthConfig {
            username: login.username.clone(),
            password: login.password.clone(),
            ..AuthConfig::default()
        };
        found
            .into_iter()
            .map(|(registry, login)| (registry.to_owned(), auth(login)))
            .collect()
    }
}

impl Entry {
    fn login(self) -> Result<Login, InvalidLogins> {
        let Some(auth) = self.auth.filter(|auth| !auth.is_empty()) else {
            return Ok(Login {
                username: self.username.unwrap_or_default(),
                password: self.password.unwrap_or_default(),
            });
        };
        let decoded = AUTH.decode(auth.trim()).map_err(|_| InvalidLogins::Auth)?;
        let text = String::from_utf8(decoded).map_err(|_| InvalidLogins::Auth)?;
        let (username, password) = text.split_once(':').ok_or(InvalidLogins::Auth)?;
        Ok(Login {
            username: username.to_owned(),
            password: password.to_owned(),
        })
    }
}

/// A registry without scheme; `/v1/` and `/v2/` mean the host itself. `None` without a host.
fn registry_key(registry: &str) -> Option<String> {
    let rest = registry
        .strip_prefix("https://")
        .or_else(|| registry.strip_prefix("http://"))
        .unwrap_or(registry);
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path = match path.get(..4) {
        Some("/v1/" | "/v2/") => &path[3..],
        _ => path,
    };
    let path = if path == "/" { "" } else { path };
    (!host.is_empty()).then(|| format!("{host}{path}"))
}

/// Host and path of an image, with the defaults for missing parts.
#[must_use]
pub fn repository(image: &str) -> String {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let path_start = name.rfind('/').map_or(0, |slash| slash + 1);
    let name = match name[path_start..].find(':') {
        Some(colon) => &name[..path_start + colon],
        None => name,
    };
    let is_host = |first: &str| {
        first.contains(['.', ':']) || first == "localhost" || first.to_lowercase() != first
    };
    match name.split_once('/') {
        Some(("docker.io" | DEFAULT_REGISTRY, path)) if !path.contains('/') => {
            format!("docker.io/library/{path}")
        }
        Some((DEFAULT_REGISTRY, path)) => format!("docker.io/{path}"),
        Some((first, _)) if is_host(first) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

/// True if a registry of credentials matches an image's [`repository`]: the ports are equal, each
/// part of the host matches, and the path is a prefix of the image's path.
#[must_use]
pub fn matches_registry(registry: &str, repository: &str) -> bool {
    let split = |text: &'_ str| -> (String, String) {
        let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
        (host.to_owned(), path.to_owned())
    };
    let ((place_host, place_path), (host, path)) = (split(registry), split(repository));
    let ((place_host, place_port), (host, port)) = (split_port(&place_host), split_port(&host));
    let (globs, parts): (Vec<_>, Vec<_>) =
        (place_host.split('.').collect(), host.split('.').collect());
    place_port == port
        && globs.len() == parts.len()
        && path.starts_with(&*place_path)
        && globs
            .iter()
            .zip(&parts)
            .all(|(glob, part)| fits(glob, part))
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port),
        _ => (host, ""),
    }
}

/// `*` matches any characters. `?` is no wildcard: upstream parses it as the end of the host.
fn fits(glob: &str, text: &str) -> bool {
    let mut glob_chars = glob.chars();
    let Some(first) = glob_chars.next() else {
        return text.is_empty();
    };
    let mut chars = text.chars();
    match first {
        '*' => {
            let rest = glob_chars.as_str();
            let ends = text.char_indices().map(|(at, _)| at);
            ends.chain([text.len()]).any(|at| fits(rest, &text[at..]))
        }
        other => chars.next() == Some(other) && fits(glob_chars.as_str(), chars.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn secret(kind: &str, key: &str, content: &str) -> Secret {
        Secret {
            kind: kind.into(),
            data: [(key.into(), Arc::from(content.as_bytes()))].into(),
        }
    }

    fn ring(registries: &[(&str, &str)]) -> Keyring {
        let auths: BTreeMap<_, _> = registries
            .iter()
            .map(|(registry, user)| {
                (
                    *registry,
                    serde_json::json!({"username": user, "password": "p"}),
                )
            })
            .collect();
        let content = serde_json::json!({ "auths": auths }).to_string();
        let mut ring = Keyring::default();
        ring.add_secret(&secret(JSON_TYPE, JSON_KEY, &content))
            .unwrap();
        ring
    }

    fn users(ring: &Keyring, image: &str) -> Vec<String> {
        ring.lookup(image)
            .into_iter()
            .map(|auth| auth.username)
            .collect()
    }

    #[test]
    fn the_most_exact_place_comes_first() {
        let ring = ring(&[
            ("registry.example", "host"),
            ("https://registry.example/team", "path"),
            ("registry.example/team/app", "image"),
            ("*.example", "glob"),
            ("other.example", "other"),
        ]);
        let found = users(&ring, "registry.example/team/app:1");
        assert_eq!(found, ["image", "path", "host", "glob"]);
        assert_eq!(
            users(&ring, "registry.example/x@sha256:00"),
            ["host", "glob"]
        );
        assert_eq!(users(&ring, "registry.example:5000/x"), [""; 0]);
        assert_eq!(users(&ring, "a.registry.example/x"), [""; 0]);
    }

    #[test]
    fn places_and_images_fit_as_upstream_says() {
        for (registry, image, fit) in [
            ("r.io:5000", "r.io:5000/a", true),
            ("http://r.io/v2/", "r.io/a", true),
            ("r.io/v1/", "r.io/a", true),
            ("r.io/v1", "r.io/a", false),
            ("r.io/ab", "r.io/abc", true),
            ("r.io/abc", "r.io/ab", false),
            ("r?.io", "r1.io/a", false),
            ("*.*.io", "a.b.io/x", true),
            ("*.io", "a.b.io/x", false),
            ("r*1.io", "r-and-1.io/x", true),
            ("https://index.docker.io/v1/", "busybox", true),
            ("https://index.docker.io/v1/", "team/app:2", true),
            ("index.docker.io", "docker.io/library/busybox", true),
            ("https://index.docker.io/v1/", "r.io/busybox", false),
            ("docker.io", "busybox", true),
            ("docker.io/library/busybox", "index.docker.io/busybox", true),
            ("localhost:5000", "localhost:5000/a:1", true),
        ] {
            let found = users(&ring(&[(registry, "u")]), image);
            assert_eq!(found.len(), usize::from(fit), "{registry} {image}");
        }
    }

    #[test]
    fn both_types_of_secrets_and_both_forms_of_a_login_count() {
        // user:pa:ss, with and without padding.
        let old = r#"{"r.io": {"auth": "dXNlcjpwYTpzcw=="}, "s.io": {"auth": "dXNlcjpwYTpzcw"}}"#;
        let mut ring = Keyring::default();
        ring.add_secret(&secret(OLD_TYPE, OLD_KEY, old)).unwrap();
        for image in ["r.io/a", "s.io/a"] {
            let found = ring.lookup(image).remove(0);
            assert_eq!((&*found.username, &*found.password), ("user", "pa:ss"));
        }
        let others = [
            secret("Opaque", JSON_KEY, "{"),
            secret(JSON_TYPE, OLD_KEY, "{"),
            secret(JSON_TYPE, JSON_KEY, ""),
            secret(JSON_TYPE, JSON_KEY, "{}"),
        ];
        for other in others {
            assert_eq!(Keyring::default().add_secret(&other), Ok(()));
        }
    }

    #[test]
    fn a_bad_secret_adds_nothing_and_its_error_tells_nothing_of_it() {
        let mut ring = Keyring::default();
        let bad = secret(JSON_TYPE, JSON_KEY, "hunter2");
        assert_eq!(ring.add_secret(&bad), Err(InvalidLogins::Json));
        let auth = r#"{"auths": {"a.io": {"username": "u"}, "r.io": {"auth": "aHVudGVyMg=="}}}"#;
        let bad = secret(JSON_TYPE, JSON_KEY, auth);
        let error = ring.add_secret(&bad).unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
        assert_eq!(ring.lookup("a.io/x").len(), 0);
    }
}
