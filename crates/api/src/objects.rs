//! What pods use of the API server: config maps, secrets, tokens and services. The contents never
//! show in `Debug`, so that they can't get into a log.

mod references;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

pub use references::references;

/// Keys and contents.
pub type ObjectData = BTreeMap<Box<str>, Arc<[u8]>>;

/// A ConfigMap.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ConfigMap {
    /// `data`: texts. Environment variables know these alone.
    pub data: ObjectData,
    /// `binaryData`, decoded. No key is in both.
    pub binary_data: ObjectData,
}

/// A Secret.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret {
    /// `type`, such as `kubernetes.io/dockerconfigjson`.
    pub kind: Box<str>,
    /// `data`, decoded.
    pub data: ObjectData,
}

/// Which token of a pod: the name of the projected volume and the `path` of the token in it.
pub type TokenKey = (Box<str>, Box<str>);

/// A service account token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub Arc<str>);

/// The objects of the API server that a pod uses, in their current versions.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PodObjects {
    /// Config maps by name; one that does not exist is absent.
    pub config_maps: BTreeMap<Box<str>, Arc<ConfigMap>>,
    /// Secrets by name; one that does not exist is absent.
    pub secrets: BTreeMap<Box<str>, Arc<Secret>>,
    /// Tokens of projected volumes.
    pub tokens: BTreeMap<TokenKey, Token>,
    /// Environment variables of services, by upstream's rule for `enableServiceLinks`.
    pub services: Vec<(String, String)>,
}

/// The names of the objects that a pod references, all in its namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectRefs {
    /// Config maps.
    pub config_maps: BTreeSet<Box<str>>,
    /// Secrets, without those only needed to pull images.
    pub secrets: BTreeSet<Box<str>>,
    /// `imagePullSecrets`.
    pub pull_secrets: BTreeSet<Box<str>>,
}

impl fmt::Debug for ConfigMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigMap")
            .field("data", &self.data.keys())
            .field("binary_data", &self.binary_data.keys())
            .finish()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("kind", &self.kind)
            .field("data", &self.data.keys())
            .finish()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}
