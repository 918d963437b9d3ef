//! The service account data that a plugin receives for a pod.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use rubelet_api::{objects::Token, pod::Pod};
use rubelet_config::{TokenAttributes, TokenCacheType};
use rubelet_node_state::objects::{ServiceAccount, ServiceAccounts};
use rubelet_pod_plan::image_access::PullServiceAccount;

use super::error::PluginError;

/// The subject for which a plugin is run.
#[derive(Debug)]
pub(super) enum PluginSubject {
    /// The node: the credentials are for all pods.
    Node,
    /// A service account.
    Account(AccountRequest),
    /// None: the plugin is not run for this pod, for this reason.
    Skip(String),
}

/// The service account in a request to a plugin.
#[derive(Debug, Clone)]
pub(super) struct AccountRequest {
    pub(super) account: PullServiceAccount,
    pub(super) token: Token,
    /// The annotations that the provider's configuration lists.
    pub(super) annotations: BTreeMap<String, String>,
    cache_type: TokenCacheType,
}

/// The part of the cache key that selects pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AccountKey {
    account: PullServiceAccount,
    annotations: BTreeMap<String, String>,
    /// SHA-256 of the token, if the response is only valid for pods with this token.
    token: Option<Vec<u8>>,
}

/// The key by which concurrent requests share one call. Different tokens may get different
/// responses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestKey {
    token: Vec<u8>,
    annotations: BTreeMap<String, String>,
}

impl PluginSubject {
    /// Determines the subject for which a provider is run.
    ///
    /// # Errors
    /// The service account cannot be read, or the API server issues no token.
    pub(super) async fn of(
        attributes: Option<&TokenAttributes>,
        pod: &Pod,
        accounts: &dyn ServiceAccounts,
    ) -> Result<Self, PluginError> {
        let Some(attributes) = attributes else {
            return Ok(Self::Node);
        };
        // Pods of manifests have no service account.
        if pod.spec.service_account.is_empty() {
            return Ok(match attributes.require_service_account {
                true => Self::Skip("the pod has no service account".to_owned()),
                false => Self::Node,
            });
        }
        let account = accounts.service_account(pod).await;
        let account = account.map_err(PluginError::ServiceAccount)?;
        let annotations = match annotations(attributes, &account) {
            Ok(annotations) => annotations,
            Err(missing) => {
                let why = format!("the service account has no annotation {missing:?}");
                return Ok(Self::Skip(why));
            }
        };
        let token = accounts.service_account_token(pod, &account.uid, &attributes.audience);
        let token = token.await.map_err(PluginError::Token)?;
        Ok(Self::Account(AccountRequest {
            account: PullServiceAccount {
                uid: account.uid.to_string(),
                namespace: pod.name.namespace.to_string(),
                name: pod.spec.service_account.to_string(),
            },
            token,
            annotations,
            cache_type: attributes.cache_type,
        }))
    }

    pub(super) fn account(&self) -> Option<&AccountRequest> {
        match self {
            Self::Account(request) => Some(request),
            Self::Node | Self::Skip(_) => None,
        }
    }
}

/// The annotations that a provider's configuration lists; a required one that is missing is the
/// error.
fn annotations<'a>(
    attributes: &'a TokenAttributes,
    account: &ServiceAccount,
) -> Result<BTreeMap<String, String>, &'a str> {
    let entry = |key: &String| {
        let value = account.annotations.get(key)?;
        Some((key.clone(), value.clone()))
    };
    let required = attributes.required_annotations.iter();
    let required = required.map(|key| entry(key).ok_or(&**key));
    let mut found: BTreeMap<_, _> = required.collect::<Result<_, _>>()?;
    found.extend(attributes.optional_annotations.iter().filter_map(entry));
    Ok(found)
}

impl AccountRequest {
    pub(super) fn cache_key(&self) -> AccountKey {
        AccountKey {
            account: self.account.clone(),
            annotations: self.annotations.clone(),
            token: match self.cache_type {
                TokenCacheType::Token => Some(hash(&self.token)),
                TokenCacheType::ServiceAccount => None,
            },
        }
    }

    pub(super) fn request_key(&self) -> RequestKey {
        RequestKey {
            token: hash(&self.token),
            annotations: self.annotations.clone(),
        }
    }

    /// True if a response with this password may be cached for all pods of the service account. The
    /// token itself is bound to one of them.
    pub(super) fn may_share(&self, password: &str) -> bool {
        self.cache_type == TokenCacheType::Token || *password != *self.token.0
    }
}

fn hash(token: &Token) -> Vec<u8> {
    digest(&SHA256, token.0.as_bytes()).as_ref().to_vec()
}
