//! Requests a certificate from the cluster: one CertificateSigningRequest, from its creation to the
//! certificate in its status.
//!
//! Source of the rules: `k8s.io/client-go/util/certificate/csr`. Unlike there, the wait has no end:
//! an approval may take days, and a request that the cluster has forgotten is made again.

use super::key::{CertificatePurpose, NodeKey};
use super::notice::CertificateNotice;
use super::pair::{Pair, PairError};
use super::rules::CertificateTemplate;
use crate::{ApiError, Change, Client, WatchTarget};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rubelet_base::Backoff;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Why a request has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The API server could not be reached. The same request may be made again.
    #[error("cannot request a certificate{advice}")]
    Unavailable {
        /// Advice, if the cause is known.
        advice: &'static str,
        /// The API server's error.
        source: ApiError,
    },
    /// The request was denied.
    #[error("CSR {name} was denied, reason: {reason}, message: {message}")]
    Denied {
        /// Name of the request.
        name: String,
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// The signer could not sign it.
    #[error("CSR {name} failed, reason: {reason}, message: {message}")]
    Failed {
        /// Name of the request.
        name: String,
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// There is another request of that name.
    #[error("CSR {name} already exists with a different request")]
    Taken {
        /// Name of the request.
        name: String,
    },
    /// The issued certificate can't be used.
    #[error("the certificate issued for CSR {name} cannot be used")]
    Issued {
        /// Name of the request.
        name: String,
        /// Why.
        source: PairError,
    },
    /// The request can't be made.
    #[error("cannot create the certificate request")]
    Request(#[from] super::key::KeyError),
}

/// The part of a CertificateSigningRequest that matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CertificateSigningRequest {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    request: String,
    signer_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
    certificate: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    reason: String,
    message: String,
}

/// The state of a request.
#[derive(Debug)]
enum CsrStage {
    Waiting,
    Approved,
    Issued(Vec<u8>),
}

/// The desired certificate, with its key.
pub(super) struct CsrSubmission<'a> {
    pub(super) client: &'a Client,
    pub(super) key: &'a NodeKey,
    pub(super) wanted: &'a CertificateTemplate,
    pub(super) purpose: CertificatePurpose,
    pub(super) notice: &'a CertificateNotice,
}

impl CsrSubmission<'_> {
    /// Sends the request, and waits until the certificate is there. May be dropped at any moment
    /// and called again with the same key.
    pub(super) async fn obtain(&self) -> Result<Pair, SigningError> {
        let name = self.key.request_name(self.wanted, self.purpose);
        let body = self.body(&name)?;
        let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(32));
        loop {
            let uid = self.submit(&name, &body).await?;
            if let Some(pem) = self.wait(&name, &uid).await? {
                return self.pair(&name, &pem);
            }
            tracing::info!("CSR {name} was deleted; creating it again");
            tokio::time::sleep(backoff.advance()).await;
        }
    }

    fn body(&self, name: &str) -> Result<Value, SigningError> {
        let request = self.key.request(self.wanted)?;
        Ok(json!({
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {
                "request": STANDARD.encode(request),
                "signerName": self.purpose.signer(),
                "usages": self.key.usages(self.purpose),
            },
        }))
    }

    /// Makes the request, or finds the one that was made before. Gives its uid.
    async fn submit(&self, name: &str, body: &Value) -> Result<String, SigningError> {
        match self
            .client
            .create::<CertificateSigningRequest>(REQUESTS, body)
            .await
        {
            Ok(made) => {
                tracing::info!("Created CSR {name}");
                return Ok(made.metadata.uid);
            }
            Err(error) if error.is_already_exists() => {}
            Err(error) => return Err(unavailable(error)),
        }
        let path = format!("{REQUESTS}/{name}");
        let found: CertificateSigningRequest = self.client.get(&path).await.map_err(unavailable)?;
        if !self.is_ours(&found) {
            let name = name.to_owned();
            return Err(SigningError::Taken { name });
        }
        tracing::info!("Reusing the existing CSR {name}");
        Ok(found.metadata.uid)
    }

    /// Whether a request that was found has the same contents and the same key.
    fn is_ours(&self, found: &CertificateSigningRequest) -> bool {
        let public = self.key.public();
        let asks = || {
            let pem = STANDARD.decode(&found.spec.request).ok()?;
            let der = CertificateSigningRequestDer::from_pem_slice(&pem).ok()?;
            let (_, request) = X509CertificationRequest::from_der(&der).ok()?;
            let info = &request.certification_request_info;
            let name = info.subject.iter_common_name().next()?.as_str().ok()?;
            Some(info.subject_pki.raw == public && name == self.wanted.common_name)
        };
        found.spec.signer_name == self.purpose.signer() && asks() == Some(true)
    }

    /// Waits for the certificate of the request. `None`: the request is gone.
    async fn wait(&self, name: &str, uid: &str) -> Result<Option<Vec<u8>>, SigningError> {
        let mut changes = self.client.watch::<CertificateSigningRequest>(WatchTarget {
            path: REQUESTS.to_owned(),
            field_selector: Some(format!("metadata.name={name}")),
            label_selector: None,
        });
        loop {
            let request = match changes.next().await {
                Change::Listed(requests) => requests
                    .into_iter()
                    .find(|request| request.metadata.name == name),
                Change::Applied(request) if request.metadata.name == name => Some(request),
                Change::Deleted(request) if request.metadata.name == name => None,
                Change::Applied(_) | Change::Deleted(_) => continue,
            };
            let Some(request) = request.filter(|request| request.metadata.uid == uid) else {
                return Ok(None);
            };
            match stage(&request)? {
                CsrStage::Issued(pem) => return Ok(Some(pem)),
                CsrStage::Approved => self.notice.say(&format!(
                    "CSR {name} is approved; waiting for its certificate"
                )),
                CsrStage::Waiting => self.notice.say(&format!(
                    "waiting for approval of CSR {name}: kubectl certificate approve {name}"
                )),
            }
        }
    }

    fn pair(&self, name: &str, pem: &[u8]) -> Result<Pair, SigningError> {
        Pair::from_pem(pem, self.key.pem().as_bytes()).map_err(|source| SigningError::Issued {
            name: name.to_owned(),
            source,
        })
    }
}

fn stage(request: &CertificateSigningRequest) -> Result<CsrStage, SigningError> {
    let condition = |kind: &str| {
        request
            .status
            .conditions
            .iter()
            .find(|found| found.kind == kind)
    };
    let name = request.metadata.name.clone();
    if let Some(Condition {
        reason, message, ..
    }) = condition("Denied").cloned()
    {
        return Err(SigningError::Denied {
            name,
            reason,
            message,
        });
    }
    if let Some(Condition {
        reason, message, ..
    }) = condition("Failed").cloned()
    {
        return Err(SigningError::Failed {
            name,
            reason,
            message,
        });
    }
    if condition("Approved").is_none() {
        return Ok(CsrStage::Waiting);
    }
    let issued = request.status.certificate.as_deref().unwrap_or_default();
    match STANDARD.decode(issued) {
        Ok(pem) if !pem.is_empty() => Ok(CsrStage::Issued(pem)),
        Ok(_) => Ok(CsrStage::Approved),
        Err(_) => Err(SigningError::Issued {
            name,
            source: PairError::NoCertificate,
        }),
    }
}

fn unavailable(source: ApiError) -> SigningError {
    let advice = match source.code() {
        Some(401) => {
            " (the credentials are not accepted; a bootstrap token that has expired is replaced with \
             kubeadm token create, and written into the bootstrap kubeconfig)"
        }
        Some(403) => " (the user of the kubeconfig may not make certificatesigningrequests)",
        _ => "",
    };
    SigningError::Unavailable { advice, source }
}

#[cfg(test)]
mod tests {
    use rubelet_yaml::read_value;
    use sim_api::malformed::{with_nulls, with_wrong_type};

    use super::*;

    #[test]
    fn whatever_is_odd_in_a_request_the_rest_of_it_is_read() {
        let full = json!({
            "metadata": {"name": "a", "uid": "u", "labels": {}},
            "spec": {"request": "cg==", "signerName": "s", "usages": ["client auth"], "groups": ["g"]},
            "status": {"certificate": "Yw==", "conditions": [
                {"type": "Approved", "status": "True", "reason": "r", "message": "m"},
            ]},
        });
        let read = |value: &Value| {
            format!(
                "{:?}",
                read_value::<CertificateSigningRequest>(value)
                    .unwrap()
                    .value
            )
        };
        for seed in 0..500 {
            let (nulls, absent) = with_nulls(seed, &full, &[]);
            let (nulls, absent) = (read(&nulls), read(&absent));
            assert_eq!(nulls, absent, "seed {seed}");
            let (wrong, absent, pointer) = with_wrong_type(seed, &full, &[]);
            assert_eq!(read(&wrong), read(&absent), "seed {seed}: {pointer}");
        }
    }
}
