//! Containers.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path, env, mounts, names, ports, requirements, security,
    values::{choice, text, texts},
};
use crate::{
    container::{Container, PullPolicy, TerminationMessagePolicy},
    hash,
};

/// What a container may refer to.
pub(super) struct Scope<'a> {
    pub(super) volumes: &'a HashSet<String>,
    pub(super) containers: &'a HashSet<String>,
    pub(super) annotations: &'a BTreeMap<String, String>,
}

pub(super) fn convert(
    containers: &[k8s::Container],
    scope: &Scope<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<Container> {
    containers
        .iter()
        .enumerate()
        .map(|(index, container)| self::container(container, scope, &path.index(index), errors))
        .collect()
}

fn container(
    container: &k8s::Container,
    scope: &Scope<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Container {
    match container.name.as_str() {
        "" => errors.required(&path.child("name"), ""),
        name => names::label(&path.child("name"), name, errors),
    }
    let image = container.image.as_deref().unwrap_or_default();
    let image_path = path.child("image");
    if image.is_empty() {
        errors.required(&image_path, "");
    } else if image.trim() != image {
        errors.invalid(&image_path, image, "must not begin or end with blanks");
    }
    let pull_policies = [
        ("Always", PullPolicy::Always),
        ("IfNotPresent", PullPolicy::IfNotPresent),
        ("Never", PullPolicy::Never),
    ];
    let message_policies = [
        ("File", TerminationMessagePolicy::File),
        (
            "FallbackToLogsOnError",
            TerminationMessagePolicy::FallbackToLogsOnError,
        ),
    ];
    let security = security::container(container, scope, &path.child("securityContext"), errors);
    Container {
        name: container.name.as_str().into(),
        image: image.into(),
        pull_policy: choice(
            &path.child("imagePullPolicy"),
            container.image_pull_policy.as_ref(),
            &pull_policies,
            errors,
        ),
        command: texts(container.command.as_ref()),
        args: texts(container.args.as_ref()),
        working_dir: text(container.working_dir.as_ref()),
        env: env::convert(
            container.env.as_ref(),
            scope.containers,
            &path.child("env"),
            errors,
        ),
        ports: ports::convert(container.ports.as_ref(), &path.child("ports"), errors),
        resources: requirements::convert(
            container.resources.as_ref(),
            &path.child("resources"),
            errors,
        ),
        mounts: mounts::convert(
            container.volume_mounts.as_ref(),
            scope.volumes,
            security.privileged,
            &path.child("volumeMounts"),
            errors,
        ),
        termination_message_path: text(container.termination_message_path.as_ref())
            .unwrap_or_default(),
        termination_message_policy: choice(
            &path.child("terminationMessagePolicy"),
            container.termination_message_policy.as_ref(),
            &message_policies,
            errors,
        ),
        security,
        stdin: container.stdin.unwrap_or(false),
        stdin_once: container.stdin_once.unwrap_or(false),
        tty: container.tty.unwrap_or(false),
        hash: hash::container_hash(&container.name, image).into(),
        definition: None,
    }
}
