//! Containers.

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path, env,
    handler::Owner,
    hooks, mounts, names, ports,
    probe::{self, Kind},
    requirements, restart,
    scope::Scope,
    security,
    values::{choice, text, texts},
};
use crate::{
    container::{Container, PullPolicy, TerminationMessagePolicy},
    hash,
    pod::RestartPolicy,
};

/// `terminationMessagePolicy`.
const MESSAGE_POLICIES: [(&str, TerminationMessagePolicy); 2] = [
    ("File", TerminationMessagePolicy::File),
    (
        "FallbackToLogsOnError",
        TerminationMessagePolicy::FallbackToLogsOnError,
    ),
];
/// `imagePullPolicy`, and `pullPolicy` of volumes.
pub(super) const PULL_POLICIES: [(&str, PullPolicy); 3] = [
    ("Always", PullPolicy::Always),
    ("IfNotPresent", PullPolicy::IfNotPresent),
    ("Never", PullPolicy::Never),
];

/// In which list a container stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Init,
    Regular,
    Ephemeral,
}

pub(super) fn convert(
    containers: &[k8s::Container],
    role: Role,
    scope: &Scope<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<Container> {
    containers
        .iter()
        .enumerate()
        .map(|(index, container)| convert_one(container, role, scope, &path.index(index), errors))
        .collect()
}

pub(super) fn convert_one(
    container: &k8s::Container,
    role: Role,
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
    let restart_policy = restart::policy(container, path, errors);
    if role == Role::Init && restart_policy != Some(RestartPolicy::Always) {
        refuse_probes(container, path, errors);
    }
    let ports = ports::convert(container.ports.as_ref(), &path.child("ports"), errors);
    let owner = Owner {
        ports: &ports,
        strict: scope.strict,
    };
    let mut probe = |field: &'static str, probe: &Option<k8s::Probe>, kind| {
        probe::convert(probe.as_ref(), kind, owner, &path.child(field), errors)
    };
    let liveness = probe("livenessProbe", &container.liveness_probe, Kind::Liveness);
    let readiness = probe(
        "readinessProbe",
        &container.readiness_probe,
        Kind::Readiness,
    );
    let startup = probe("startupProbe", &container.startup_probe, Kind::Startup);
    let lifecycle = container.lifecycle.as_ref();
    let lifecycle_path = path.child("lifecycle");
    let lifecycle = hooks::convert(lifecycle, owner, scope.grace, &lifecycle_path, errors);
    let security = security::container(container, scope, &path.child("securityContext"), errors);
    Container {
        name: container.name.as_str().into(),
        image: image.into(),
        pull_policy: choice(
            &path.child("imagePullPolicy"),
            container.image_pull_policy.as_ref(),
            &PULL_POLICIES,
            errors,
        ),
        command: texts(container.command.as_ref()),
        args: texts(container.args.as_ref()),
        working_dir: text(container.working_dir.as_ref()),
        env_from: env::from_objects(container.env_from.as_ref()),
        env: env::convert(
            container.env.as_ref(),
            scope.containers,
            &path.child("env"),
            errors,
        ),
        ports,
        resources: requirements::convert(
            container.resources.as_ref(),
            &path.child("resources"),
            errors,
        ),
        restart_policy,
        restart_rules: restart::rules(container, path, errors),
        liveness,
        readiness,
        startup,
        lifecycle,
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
            &MESSAGE_POLICIES,
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

/// An init container that ends before the next one starts has no use for probes and hooks.
fn refuse_probes(container: &k8s::Container, path: &Path<'_>, errors: &mut Errors) {
    for (field, given) in [
        ("lifecycle", container.lifecycle.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
    ] {
        if given {
            let detail = "an init container can have it only with restartPolicy: Always";
            errors.forbidden(&path.child(field), detail);
        }
    }
}
