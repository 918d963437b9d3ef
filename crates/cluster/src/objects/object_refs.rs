//! The objects that a pod references, and their uses.

use std::collections::BTreeMap;

use rubelet_api::{
    container::{Container, EnvValue, ObjectKind},
    pod::Pod,
    volume::{FileVolume, Projection, Volume},
};

use super::object_key::ObjectKey;

/// The use of an object by a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// To start containers: variables, or the pull of an image.
    Start,
    /// In a volume: running containers see its changes.
    Volume,
}

/// One token that a volume wants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TokenUse {
    /// The volume.
    pub(super) volume: Box<str>,
    /// The file in it.
    pub(super) path: Box<str>,
    /// The request to the API server.
    pub(super) request: TokenRequest,
}

/// The required properties of a token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) struct TokenRequest {
    /// For whom it is; empty: for the API server.
    pub(super) audience: Box<str>,
    /// Its requested lifetime, in seconds.
    pub(super) seconds: u64,
    /// The UID that the service account must have, for a token that the pod itself does not get; empty: whichever
    /// has the name.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(super) account_uid: Box<str>,
}

impl TokenRequest {
    /// Whether the token is for a program that returns credentials of image pulls. It is requested
    /// when an image is pulled, and needs no replacement before.
    pub(super) fn is_for_pulls(&self) -> bool {
        !self.account_uid.is_empty()
    }
}

/// All objects that the pod names.
pub(super) fn of_pod(pod: &Pod) -> BTreeMap<ObjectKey, Use> {
    let ephemeral = pod.spec.ephemeral_containers.iter();
    let containers = pod.spec.all_containers();
    let mut found: BTreeMap<ObjectKey, Use> = containers
        .chain(ephemeral.map(|one| &one.container))
        .flat_map(|container| of_environment(pod, container))
        .chain(of_pulls(pod))
        .map(|key| (key, Use::Start))
        .collect();
    for volume in &pod.spec.volumes {
        found.extend(
            of_volume(pod, volume)
                .into_iter()
                .map(|key| (key, Use::Volume)),
        );
    }
    found
}

/// Objects whose keys become variables of the container, in order.
pub(super) fn of_environment(pod: &Pod, container: &Container) -> Vec<ObjectKey> {
    let from = container
        .env_from
        .iter()
        .map(|from| (from.kind, &*from.name));
    let single = container
        .env
        .iter()
        .filter_map(|variable| match &variable.value {
            EnvValue::ConfigMapKey(key) => Some((ObjectKind::ConfigMap, &*key.object)),
            EnvValue::SecretKey(key) => Some((ObjectKind::Secret, &*key.object)),
            EnvValue::Literal(_)
            | EnvValue::Field(_)
            | EnvValue::Resource(_)
            | EnvValue::FileKey(_) => None,
        });
    keys(pod, from.chain(single))
}

/// Secrets for pulls.
pub(super) fn of_pulls(pod: &Pod) -> Vec<ObjectKey> {
    let names = pod.spec.image_pull_secrets.iter();
    keys(pod, names.map(|name| (ObjectKind::Secret, &**name)))
}

/// Objects that the volume holds.
pub(super) fn of_volume(pod: &Pod, volume: &Volume) -> Vec<ObjectKey> {
    keys(pod, volume.source.objects())
}

/// Tokens that the volume holds.
pub(super) fn tokens_of(volume: &Volume) -> Vec<TokenUse> {
    let files = volume.source.files();
    let sources = files.map_or(&[][..], FileVolume::projections);
    let tokens = sources.iter().filter_map(|source| match source {
        Projection::ServiceAccountToken {
            audience,
            expiration,
            path,
        } => Some(TokenUse {
            volume: volume.name.clone(),
            path: path.clone(),
            request: TokenRequest {
                audience: audience.clone(),
                seconds: expiration.as_secs(),
                account_uid: "".into(),
            },
        }),
        _ => None,
    });
    tokens.collect()
}

/// Whether an object may have this name. References may contain invalid names or none: the API
/// server accepts them. There is no such object, and a request for it could be one for something
/// else.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| fits(byte) || matches!(byte, b'-' | b'.');
    name.len() <= 253
        && name.bytes().all(inner)
        && name.bytes().next().is_some_and(fits)
        && name.bytes().next_back().is_some_and(fits)
}

fn keys<'a>(pod: &Pod, named: impl IntoIterator<Item = (ObjectKind, &'a str)>) -> Vec<ObjectKey> {
    let named = named.into_iter().filter(|(_, name)| is_name(name));
    named
        .map(|(kind, name)| ObjectKey {
            kind,
            namespace: (&*pod.name.namespace).into(),
            name: name.into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn only_what_can_be_the_name_of_an_object_is_asked_for() {
        for name in ["a", "kube-root-ca.crt", "0", &"x".repeat(253)] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "-a",
            "a/../../kube-system/secrets/b",
            "a,metadata.name=b",
            "a?watch=1",
            "a%2fb",
            "A",
            "é",
            &"x".repeat(254),
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
