//! Pods: defaults, and which fields each path may change.

mod addresses;
mod admission;
mod bind;
mod defaults;
mod qos;
mod spec_change;
mod transition;
mod validate;

use serde_json::{Value, json};

use super::{Context, next_generation};
use crate::{Kind, StatusError, meta, status_error::FieldError};

pub(crate) use self::bind::bind;

pub(super) fn before_create(
    kind: &'static Kind,
    pod: &mut Value,
    context: &mut Context<'_>,
) -> Result<(), StatusError> {
    let name = meta::name(pod).to_owned();
    meta::fields(pod, "spec");
    defaults::complete(pod);
    admission::admit(kind, pod, context)?;
    let causes = validate::check(pod);
    if !causes.is_empty() {
        return Err(StatusError::invalid(kind, &name, causes));
    }
    pod["metadata"]["generation"] = 1.into();
    pod["status"] = json!({ "phase": "Pending", "qosClass": qos::class(&pod["spec"]) });
    Ok(())
}

/// The pod itself: its status has another path.
pub(super) fn before_update(kind: &Kind, old: &Value, new: &mut Value) -> Result<(), StatusError> {
    meta::copy_field(new, old, "status");
    defaults::complete(new);
    let causes = spec_change::check(old, new);
    if !causes.is_empty() {
        return Err(StatusError::invalid(kind, meta::name(old), causes));
    }
    if new["spec"] != old["spec"] {
        next_generation(new);
    }
    Ok(())
}

/// The status: everything else is unchanged, except for labels and annotations.
pub(super) fn before_status(kind: &Kind, old: &Value, new: &mut Value) -> Result<(), StatusError> {
    meta::copy_field(new, old, "spec");
    let (from, to) = (&old["metadata"], &mut new["metadata"]);
    meta::copy_field(to, from, "ownerReferences");
    let status = meta::fields(new, "status");
    let (before, generation) = (&old["status"], "observedGeneration");
    if status.get("qosClass").is_none_or(|class| class == "") {
        meta::copy_field(&mut new["status"], before, "qosClass");
    }
    if new["status"].get(generation).is_none() {
        meta::copy_field(&mut new["status"], before, generation);
    }
    addresses::complete(&mut new["status"]);
    let mut causes = transition::check(old, new);
    causes.extend(addresses::check(old, new));
    let nominated = &new["status"]["nominatedNodeName"];
    let is_bound = !meta::text(old, "/spec/nodeName").is_empty();
    if is_bound
        && !meta::text(nominated, "").is_empty()
        && *nominated != before["nominatedNodeName"]
    {
        causes.push(FieldError::forbidden(
            "status.nominatedNodeName",
            "may not be set on pods that are already bound to a node",
        ));
    }
    if new["status"]["qosClass"] != before["qosClass"] {
        let value = &new["status"]["qosClass"];
        causes.push(FieldError::invalid(
            "status.qosClass",
            value,
            "field is immutable",
        ));
    }
    if !causes.is_empty() {
        return Err(StatusError::invalid(kind, meta::name(old), causes));
    }
    Ok(())
}

/// Ephemeral containers can be added, but not changed or removed.
pub(super) fn before_ephemeral(
    kind: &Kind,
    old: &Value,
    new: &mut Value,
) -> Result<(), StatusError> {
    const LIST: &str = "/spec/ephemeralContainers";
    let wanted = meta::entries(new, LIST).to_vec();
    let mut kept = old.clone();
    meta::copy_field(&mut kept["metadata"], &new["metadata"], "labels");
    meta::copy_field(&mut kept["metadata"], &new["metadata"], "annotations");
    *new = kept;
    new["spec"]["ephemeralContainers"] = wanted.into();
    defaults::complete(new);
    let list = meta::entries(new, LIST);
    let changed = meta::entries(old, LIST).iter().find(|old| {
        let same_name = |one: &&Value| one["name"] == old["name"];
        list.iter().find(same_name) != Some(old)
    });
    if let Some(container) = changed {
        let message = format!(
            "existing ephemeral containers {} may not be removed or changed",
            container["name"]
        );
        let cause = FieldError::forbidden("spec.ephemeralContainers", &message);
        return Err(StatusError::invalid(kind, meta::name(old), vec![cause]));
    }
    if new["spec"] != old["spec"] {
        next_generation(new);
    }
    Ok(())
}
