//! Certificate requests: the requester is recorded, approval is a subresource, and approved requests
//! are signed immediately. Sources: upstream's strategy, approver and signer of certificate requests.

use std::time::Duration;

use serde_json::{Value, json};

use super::Context;
use crate::{
    Approval, Kind, StatusError,
    authority::{self, Purpose, Subject},
    base64, clock, meta,
    state::ServerState,
    status_error::FieldError,
    store::Store,
};

const CLIENT_KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const SERVING: &str = "kubernetes.io/kubelet-serving";

pub(super) fn before_create(
    kind: &Kind,
    object: &mut Value,
    context: &Context<'_>,
) -> Result<(), StatusError> {
    let name = meta::name(object).to_owned();
    let (signer, request) = (signer(object).to_owned(), request(object));
    let mut causes = Vec::new();
    if signer.is_empty() {
        causes.push(FieldError::required("spec.signerName", ""));
    }
    if meta::entries(object, "/spec/usages").is_empty() {
        causes.push(FieldError::required(
            "spec.usages",
            "usages must be provided for certificates.k8s.io/v1",
        ));
    }
    let subject = authority::subject(&request.unwrap_or_default());
    if let Err(error) = subject {
        let value = object["spec"]["request"].clone();
        causes.push(FieldError::invalid(
            "spec.request",
            &value,
            &error.to_string(),
        ));
    }
    if !causes.is_empty() {
        return Err(StatusError::invalid(kind, &name, causes));
    }
    object["status"] = json!({});
    let spec = meta::fields(object, "spec");
    let user = context.user.to_json();
    for field in ["username", "uid", "groups", "extra"] {
        match user.get(field) {
            Some(value) => spec.insert(field.to_owned(), value.clone()),
            None => spec.remove(field),
        };
    }
    let is_automatic = match context.config.approval {
        Approval::Manual => false,
        Approval::Clients => signer == CLIENT_KUBELET,
        Approval::All => true,
    };
    if is_automatic {
        let now = clock::seconds(context.now);
        object["status"]["conditions"] = json!([{
            "type": "Approved",
            "status": "True",
            "reason": "AutoApproved",
            "message": "Auto approving kubelet client certificate after SubjectAccessReview.",
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }]);
    }
    Ok(())
}

pub(super) fn before_update(
    kind: &Kind,
    subresource: &str,
    old: &Value,
    new: &mut Value,
    context: &Context<'_>,
) -> Result<(), StatusError> {
    meta::copy_field(new, old, "spec");
    match subresource {
        "approval" => {
            let conditions = new["status"]["conditions"].take();
            meta::copy_field(new, old, "status");
            meta::fields(new, "status").insert("conditions".to_owned(), conditions);
            let now = clock::seconds(context.now);
            let conditions = new["status"]["conditions"].as_array_mut();
            for condition in conditions.into_iter().flatten() {
                meta::default(condition, "lastUpdateTime", now.as_str());
                meta::default(condition, "lastTransitionTime", now.as_str());
            }
            if has(new, "Approved") && has(new, "Denied") {
                let cause = FieldError::invalid(
                    "status.conditions",
                    &"Denied".into(),
                    "Approved and Denied conditions are mutually exclusive",
                );
                return Err(StatusError::invalid(kind, meta::name(old), vec![cause]));
            }
            Ok(())
        }
        "status" => Ok(()),
        "" => {
            meta::copy_field(new, old, "status");
            Ok(())
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

fn has(object: &Value, condition: &str) -> bool {
    let conditions = meta::entries(object, "/status/conditions");
    conditions.iter().any(|one| one["type"] == condition)
}

fn signer(object: &Value) -> &str {
    meta::text(object, "/spec/signerName")
}

fn request(object: &Value) -> Option<Vec<u8>> {
    base64::decode(meta::text(object, "/spec/request"))
}

/// Signs an approved request that is not signed yet, or records why that fails.
pub(super) fn sign(shared: &ServerState, object: &Value, store: &mut Store) {
    let is_open = meta::text(object, "/status/certificate").is_empty() && !has(object, "Failed");
    if !has(object, "Approved") || has(object, "Denied") || !is_open {
        return;
    }
    let purpose = match signer(object) {
        CLIENT_KUBELET | CLIENT => Purpose::Client,
        SERVING => Purpose::Server,
        // Other signers.
        _ => return,
    };
    let now = shared.clock.now();
    let lifetime = shared.config().certificate_lifetime;
    let asked = meta::number(object, "/spec/expirationSeconds");
    let asked = asked.and_then(|seconds| u64::try_from(seconds).ok());
    let lifetime = asked.map_or(lifetime, |seconds| {
        lifetime.min(Duration::from_secs(seconds))
    });
    let request = request(object).unwrap_or_default();
    let signed = match check(object, &request) {
        Ok(()) => shared
            .authority
            .sign(&request, purpose, now, lifetime)
            .map_err(|error| error.to_string()),
        Err(why) => Err(why.to_owned()),
    };
    let mut object = object.clone();
    match signed {
        Ok(certificate) => {
            let pem = base64::encode(certificate.pem().as_bytes());
            object["status"]["certificate"] = pem.into();
        }
        Err(why) => {
            let now = clock::seconds(now);
            if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
                conditions.push(json!({
                    "type": "Failed", "status": "True", "reason": "SignerValidationFailure",
                    "message": why, "lastUpdateTime": now, "lastTransitionTime": now,
                }));
            }
        }
    }
    store.put("certificatesigningrequests", object);
}

/// Requirements of the signers of nodes' certificates.
fn check(object: &Value, request: &[u8]) -> Result<(), &'static str> {
    let subject = authority::subject(request).map_err(|_| "the request cannot be parsed")?;
    let Subject {
        common_name,
        organization,
        has_names,
    } = &subject;
    let usages = meta::entries(object, "/spec/usages");
    let wants = |usage: &str| usages.iter().any(|found| found == usage);
    let signer = signer(object);
    if signer == CLIENT {
        return Ok(());
    }
    if organization != "system:nodes" {
        return Err("subject organization is not system:nodes");
    }
    if !common_name.starts_with("system:node:") {
        return Err("subject common name does not begin with system:node:");
    }
    match signer {
        CLIENT_KUBELET if *has_names => Err("DNS, IP, email or URI SANs are not allowed"),
        CLIENT_KUBELET if !wants("client auth") => Err("usages did not match"),
        SERVING if !*has_names => Err("DNS or IP subjectAltName is required"),
        SERVING if !wants("server auth") => Err("usages did not match"),
        SERVING if common_name != meta::text(object, "/spec/username") => {
            Err("subject common name is not the requesting user")
        }
        _ => Ok(()),
    }
}
