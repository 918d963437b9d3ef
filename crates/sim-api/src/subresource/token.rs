//! Tokens of service accounts. Source of checks and texts: upstream's TokenREST.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    Kind, StatusError,
    access::{AUDIENCE, claims},
    clock, meta,
    request::Request,
    state::Shared,
    status_error::FieldError,
    store::Store,
};

/// The shortest life a token can be asked for, and the one it gets if none is asked for.
const SHORTEST: i64 = 600;
const USUAL: i64 = 3600;

pub(super) fn create(shared: &Shared, request: &Request) -> Result<Value, StatusError> {
    let mut wanted = request.object("authentication.k8s.io/v1", "TokenRequest")?;
    let (kind, target) = (request.kind(), &request.target);
    let (namespace, name) = (target.namespace(), target.name());
    let (account, bound) = shared.with_store(|store| {
        let account = store.get("serviceaccounts", namespace, name).cloned();
        let account = account.ok_or_else(|| StatusError::not_found(kind, name))?;
        let bound = match wanted.pointer("/spec/boundObjectRef") {
            Some(reference) if !reference.is_null() => {
                Some(bound_object(store, reference, namespace, name)?)
            }
            _ => None,
        };
        Ok::<_, StatusError>((account, bound))
    })?;
    let seconds = meta::number(&wanted, "/spec/expirationSeconds").unwrap_or(USUAL);
    if seconds < SHORTEST {
        let cause = FieldError::invalid(
            "spec.expirationSeconds",
            &seconds.into(),
            "may not specify a duration less than 10 minutes",
        );
        let mut error = StatusError::invalid(kind, "", vec![cause]);
        error.message =
            error
                .message
                .replacen("ServiceAccount", "TokenRequest.authentication.k8s.io", 1);
        return Err(error);
    }
    let audiences = meta::entries(&wanted, "/spec/audiences");
    let mut audiences: Vec<String> = audiences
        .iter()
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect();
    if audiences.is_empty() {
        audiences.push(AUDIENCE.to_owned());
    }
    let now = shared.clock.now();
    let lifetime = Duration::from_secs(seconds.unsigned_abs());
    let claims = claims(&account, &audiences, bound.as_ref(), now, lifetime);
    let token = shared.access().issue(&claims);
    wanted["apiVersion"] = "authentication.k8s.io/v1".into();
    wanted["kind"] = "TokenRequest".into();
    wanted["metadata"] = json!({
        "name": name,
        "namespace": namespace,
        "uid": meta::uid(&account),
        "creationTimestamp": clock::seconds(now),
    });
    wanted["spec"]["audiences"] = json!(audiences);
    wanted["spec"]["expirationSeconds"] = seconds.into();
    wanted["status"] = json!({
        "token": token,
        "expirationTimestamp": clock::seconds(now + SignedDuration::from_secs(seconds)),
    });
    Ok(wanted)
}

fn bound_object(
    store: &Store,
    reference: &Value,
    namespace: &str,
    account: &str,
) -> Result<Value, StatusError> {
    let name = meta::text(reference, "/name");
    let (plural, namespace) = match meta::text(reference, "/kind") {
        "Pod" => ("pods", namespace),
        "Secret" => ("secrets", namespace),
        "Node" => ("nodes", ""),
        other => {
            let message = format!("cannot bind token to object of type /v1, Kind={other}");
            return Err(StatusError::bad_request(message));
        }
    };
    let kind = Kind::of(plural).expect("these are in the table");
    let found = store.get(plural, namespace, name);
    let found = found.ok_or_else(|| StatusError::not_found(kind, name))?;
    if plural == "pods" && meta::text(found, "/spec/serviceAccountName") != account {
        return Err(StatusError::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different \
             serviceaccount name."
        )));
    }
    let uid = meta::text(reference, "/uid");
    if !uid.is_empty() && uid != meta::uid(found) {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        return Err(StatusError::conflict(kind, name, &why));
    }
    Ok(Value::clone(found))
}
