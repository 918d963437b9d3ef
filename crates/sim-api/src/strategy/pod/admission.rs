//! Admission of a pod: adds priority, tolerations of short outages and the service account.
//! Sources: upstream's admission plugins Priority, DefaultTolerationSeconds and ServiceAccount.

use serde_json::{Value, json};

use crate::{Kind, StatusError, meta, strategy::Context};

const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";

/// Path of the token in containers.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(super) fn admit(
    kind: &'static Kind,
    pod: &mut Value,
    context: &mut Context<'_>,
) -> Result<(), StatusError> {
    priority(kind, pod)?;
    tolerate(&mut pod["spec"]);
    if pod.pointer(MIRROR).is_none() {
        service_account(kind, pod, context)?;
    }
    Ok(())
}

fn priority(kind: &Kind, pod: &mut Value) -> Result<(), StatusError> {
    let class = meta::text(pod, "/spec/priorityClassName");
    let value = match class {
        "" => 0,
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        other => {
            let why = format!("no PriorityClass with name {other} was found");
            return Err(StatusError::forbidden(kind, meta::name(pod), &why));
        }
    };
    let spec = &mut pod["spec"];
    meta::default(spec, "priority", value);
    meta::default(spec, "preemptionPolicy", "PreemptLowerPriority");
    Ok(())
}

/// Tolerates a node that is not ready or unreachable for five minutes.
fn tolerate(spec: &mut Value) {
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let is_said = tolerations.iter().any(|one| {
            let of_key = ["", key].contains(&meta::text(one, "/key"));
            of_key && ["", "NoExecute"].contains(&meta::text(one, "/effect"))
        });
        if !is_said {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    spec["tolerations"] = tolerations.into();
}

fn service_account(
    kind: &'static Kind,
    pod: &mut Value,
    context: &mut Context<'_>,
) -> Result<(), StatusError> {
    let (namespace, name) = (meta::namespace(pod).to_owned(), meta::name(pod).to_owned());
    let spec = &mut pod["spec"];
    let old_name = spec["serviceAccount"].clone();
    if old_name.is_string() {
        meta::default(spec, "serviceAccountName", old_name);
    }
    if meta::text(spec, "/serviceAccountName").is_empty() {
        spec["serviceAccountName"] = "default".into();
    }
    let account = spec["serviceAccountName"].clone();
    spec["serviceAccount"] = account.clone();
    let account = account.as_str().unwrap_or_default();
    let found = context.store.get("serviceaccounts", &namespace, account);
    let Some(found) = found else {
        let why = format!(
            "error looking up service account {namespace}/{account}: serviceaccount {account:?} not \
             found"
        );
        return Err(StatusError::forbidden(kind, &name, &why));
    };
    if spec.get("imagePullSecrets").is_none() {
        meta::copy_field(spec, found, "imagePullSecrets");
    }
    let wanted = [&*spec, found]
        .into_iter()
        .find_map(|object| object.get("automountServiceAccountToken")?.as_bool());
    if context.config.service_account_volumes && wanted.unwrap_or(true) {
        let volume = format!("kube-api-access-{}", context.dice.suffix());
        mount_token(spec, &volume);
    }
    Ok(())
}

fn mount_token(spec: &mut Value, volume: &str) {
    let mut is_used = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = meta::entries(container, "/volumeMounts");
            if mounts.iter().any(|mount| mount["mountPath"] == TOKEN_PATH) {
                continue;
            }
            is_used = true;
            push(
                container,
                "volumeMounts",
                json!({ "name": volume, "readOnly": true, "mountPath": TOKEN_PATH }),
            );
        }
    }
    if !is_used {
        return;
    }
    push(
        spec,
        "volumes",
        json!({ "name": volume, "projected": { "defaultMode": 420, "sources": [
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{ "key": "ca.crt", "path": "ca.crt" }],
            } },
            { "downwardAPI": { "items": [{
                "path": "namespace",
                "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" },
            }] } },
        ] } }),
    );
}

fn push(object: &mut Value, list: &str, entry: Value) {
    if !object[list].is_array() {
        object[list] = json!([]);
    }
    if let Some(entries) = object[list].as_array_mut() {
        entries.push(entry);
    }
}
