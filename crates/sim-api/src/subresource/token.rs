//! Tokens of service accounts. Source of checks, their order and texts: upstream's `TokenREST`, and for nodes the
//! admission plugin NodeRestriction.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    Kind, StatusError, clock, meta, request::Request, service_account::TokenSpec,
    state::ServerState, status_error::FieldError, store::Store,
};

/// Minimum, maximum and default lifetime of a token, in seconds.
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 3600;

/// A pod's token that is requested with this lifetime is valid for a year: it is the one that is mounted into
/// pods, and some programs don't reload it. Use after the requested lifetime is counted.
const EXTENDED_SECONDS: i64 = 3607;
const YEAR: i64 = 365 * 24 * 3600;

/// The verb that allows a node to request audiences that its pods do not name; the resource is the audience.
const AUDIENCE_VERB: &str = "request-serviceaccounts-token-audience";

/// The kind of the request, for errors.
const TOKEN_REQUEST: Kind = Kind {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "TokenRequest",
    singular: "tokenrequest",
    kind: "TokenRequest",
    short_names: &[],
    namespaced: true,
    subresources: &[],
    fields: &[],
    storage: "",
    is_review: false,
    creates_on_update: false,
};

pub(super) fn create(shared: &ServerState, request: &Request) -> Result<Value, StatusError> {
    let mut wanted = request.object("authentication.k8s.io/v1", "TokenRequest")?;
    let (kind, target) = (request.kind(), &request.target);
    let (namespace, name) = (target.namespace(), target.name());
    let config = shared.config();
    check_place(&wanted, "name", name, name)?;
    check_place(&wanted, "namespace", namespace, name)?;
    let audiences = meta::entries(&wanted, "/spec/audiences").iter();
    let mut audiences: Vec<String> = audiences
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect();
    if let Some(node) = request.user.node_name().filter(|_| config.node_restriction) {
        let place = (kind, namespace, name);
        let granted = audiences.first().is_some_and(|audience| {
            // Access rules of the model can't contain the account's name.
            let access = shared.access();
            access.is_granted(&request.user, AUDIENCE_VERB, audience)
        });
        let node = (node, granted);
        shared.with_store(|store| check_node(shared, store, place, &wanted, node))?;
    }
    if audiences.is_empty() {
        audiences.clone_from(&config.audiences);
    }
    let mut seconds = meta::number(&wanted, "/spec/expirationSeconds").unwrap_or(DEFAULT_SECONDS);
    let (account, bound, node) = shared.with_store(|store| {
        let account = store.get("serviceaccounts", namespace, name).cloned();
        let account = account.ok_or_else(|| StatusError::not_found(kind, name))?;
        check_uid(&wanted, &account)?;
        check_life(seconds)?;
        let bound = match wanted.pointer("/spec/boundObjectRef") {
            Some(reference) if !reference.is_null() => {
                Some(bound_object(store, reference, namespace, name)?)
            }
            _ => None,
        };
        let node = bound.as_ref().and_then(|bound| node_of(store, bound));
        Ok::<_, StatusError>((account, bound, node))
    })?;
    let longest = config.longest_token.map(|longest| longest.as_secs());
    if let Some(longest) = longest.and_then(|longest| i64::try_from(longest).ok()) {
        seconds = seconds.min(longest);
    }
    let is_of_pod = bound.as_ref().is_some_and(|bound| bound["kind"] == "Pod");
    let is_own = audiences.iter().all(|one| config.audiences.contains(one));
    let is_extended = is_of_pod && is_own && seconds == EXTENDED_SECONDS;
    let now = shared.clock.now();
    let id = shared.dice().uid();
    let token = TokenSpec {
        account: &account,
        audiences: &audiences,
        bound: bound.as_ref(),
        node,
        now,
        seconds: if is_extended { YEAR } else { seconds },
        warn_after: is_extended.then_some(seconds),
        id,
    };
    let token = shared.access().issue(&token.claims());
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

/// Name and namespace in the body must be those of the path, if they are set.
fn check_place(wanted: &Value, key: &str, expected: &str, name: &str) -> Result<(), StatusError> {
    let found = meta::text(&wanted["metadata"], &format!("/{key}"));
    if found.is_empty() || found == expected {
        return Ok(());
    }
    let why = format!("must match the service account {key} if specified");
    let cause = FieldError::invalid(format!("metadata.{key}"), &found.into(), &why);
    Err(StatusError::invalid(&TOKEN_REQUEST, name, vec![cause]))
}

fn check_uid(wanted: &Value, account: &Value) -> Result<(), StatusError> {
    let (asked, found) = (meta::uid(wanted), meta::uid(account));
    if asked.is_empty() || asked == found {
        return Ok(());
    }
    let why = format!(
        "the UID in the token request ({asked}) does not match the UID of the service account ({found})"
    );
    let name = meta::name(account);
    Err(StatusError::conflict(&TOKEN_REQUEST, name, &why))
}

fn check_life(seconds: i64) -> Result<(), StatusError> {
    let why = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let cause = FieldError::invalid("spec.expirationSeconds", &seconds.into(), why);
    Err(StatusError::invalid(&TOKEN_REQUEST, "", vec![cause]))
}

/// A node gets tokens for pods that run on it, and for an audience that the pod names or that the node is
/// granted.
fn check_node(
    shared: &ServerState,
    store: &Store,
    (kind, namespace, account): (&Kind, &str, &str),
    wanted: &Value,
    (node, granted): (&str, bool),
) -> Result<(), StatusError> {
    let refused = |why: &str| Err(StatusError::forbidden(kind, account, why));
    let text = |key: &str| meta::text(wanted, &format!("/spec/boundObjectRef/{key}"));
    if text("apiVersion") != "v1" || text("kind") != "Pod" || text("name").is_empty() {
        return refused("node requested token not bound to a pod");
    }
    if text("uid").is_empty() {
        return refused("node requested token with a pod binding without a uid");
    }
    let pods = Kind::of("pods").expect("it is in the table");
    let pod = shared.pod_for_admission(store, namespace, text("name"));
    let pod = pod.ok_or_else(|| StatusError::not_found(pods, text("name")))?;
    if text("uid") != meta::uid(&pod) {
        return refused(&other_uid(text("uid")));
    }
    if meta::text(&pod, "/spec/nodeName") != node {
        return refused("node requested token bound to a pod scheduled on a different node");
    }
    let audience = match meta::entries(wanted, "/spec/audiences") {
        [] => "",
        [only] => meta::text(only, ""),
        _ => return refused("node may only request 0 or 1 audiences"),
    };
    if names_audience(store, &pod, audience) || granted {
        return Ok(());
    }
    refused(&format!(
        "audience {audience:?} not found in pod spec volume, system:node:{node} is not authorized to request \
         tokens for this audience"
    ))
}

/// Whether a volume of the pod, or its CSI driver, names this audience.
fn names_audience(store: &Store, pod: &Value, audience: &str) -> bool {
    let has = |entries: &[Value], place: &str| {
        let mut entries = entries.iter();
        entries.any(|entry| {
            let of = entry.pointer(place);
            of.is_some_and(|of| meta::text(of, "/audience") == audience)
        })
    };
    meta::entries(pod, "/spec/volumes").iter().any(|volume| {
        let driver = meta::text(volume, "/csi/driver");
        let driver = store.get("csidrivers", "", driver);
        let requests = driver.map_or(&[] as &[_], |driver| {
            meta::entries(driver, "/spec/tokenRequests")
        });
        let sources = meta::entries(volume, "/projected/sources");
        has(sources, "/serviceAccountToken") || has(requests, "")
    })
}

fn other_uid(asked: &str) -> String {
    format!(
        "the UID in the bound object reference ({asked}) does not match the UID in record. The object \
         might have been deleted and then recreated"
    )
}

fn bound_object(
    store: &Store,
    reference: &Value,
    namespace: &str,
    account: &str,
) -> Result<Value, StatusError> {
    let name = meta::text(reference, "/name");
    let api_version = meta::text(reference, "/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (plural, namespace) = match (group, meta::text(reference, "/kind")) {
        ("", "Pod") => ("pods", namespace),
        ("", "Secret") => ("secrets", namespace),
        ("", "Node") => ("nodes", ""),
        (_, kind) => {
            return Err(StatusError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
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
        // Here the API server uses the kind, not the plural.
        let named = Kind {
            plural: kind.kind,
            ..*kind
        };
        return Err(StatusError::conflict(&named, name, &other_uid(uid)));
    }
    Ok(Value::clone(found))
}

/// The node of a pod; if it does not exist, only with its name.
fn node_of(store: &Store, pod: &Value) -> Option<Value> {
    let name = meta::text(pod, "/spec/nodeName");
    if name.is_empty() || pod["kind"] != "Pod" {
        return None;
    }
    let found = store.get("nodes", "", name).map(|node| Value::clone(node));
    Some(found.unwrap_or_else(|| json!({ "metadata": { "name": name } })))
}
