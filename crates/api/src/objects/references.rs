//! Which objects a pod refers to.

use super::ObjectRefs;
use crate::{
    container::{Container, EnvValue, ObjectKind},
    pod::Pod,
};

/// The objects that the pod's volumes and environments name, whether optional or not.
#[must_use]
pub fn references(pod: &Pod) -> ObjectRefs {
    let mut refs = ObjectRefs::default();
    let ephemeral = pod.spec.ephemeral_containers.iter();
    for container in pod
        .spec
        .all_containers()
        .chain(ephemeral.map(|one| &one.container))
    {
        of_container(container, &mut refs);
    }
    for volume in &pod.spec.volumes {
        for (kind, name) in volume.source.objects() {
            refs.add(kind, name);
        }
    }
    refs.pull_secrets
        .extend(pod.spec.image_pull_secrets.iter().cloned());
    refs
}

fn of_container(container: &Container, refs: &mut ObjectRefs) {
    for source in &container.env_from {
        refs.add(source.kind, &source.name);
    }
    for variable in &container.env {
        match &variable.value {
            EnvValue::ConfigMapKey(key) => refs.add(ObjectKind::ConfigMap, &key.object),
            EnvValue::SecretKey(key) => refs.add(ObjectKind::Secret, &key.object),
            EnvValue::Literal(_)
            | EnvValue::Field(_)
            | EnvValue::Resource(_)
            | EnvValue::FileKey(_) => {}
        }
    }
}

impl ObjectRefs {
    /// A name may be empty: the API server takes a reference without one. It leads nowhere.
    fn add(&mut self, kind: ObjectKind, name: &str) {
        let names = match kind {
            ObjectKind::ConfigMap => &mut self.config_maps,
            ObjectKind::Secret => &mut self.secrets,
        };
        if !name.is_empty() {
            names.insert(name.into());
        }
    }
}
