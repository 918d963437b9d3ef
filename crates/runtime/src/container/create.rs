//! `CreateContainer`.

use std::{path::PathBuf, sync::Arc};

use rubelet_cgroup_plan::{ContainerCgroup, runtime_cgroup};
use rubelet_cri::v1::{self, ContainerEventType};
use rubelet_images::{Image, RootfsLayers};
use rubelet_runtime_plan::{
    Refusal,
    cri_status::sandbox_metadata,
    record::{ContainerRecord, MountRecord, UserRecord, names},
    resources,
    state::{ContainerPhase, SandboxCall},
    stop_signal,
};
use rubelet_shim::protocol::{Call, CreateContainer, Rootfs, ShimReply};

use super::{
    Container, bundle, creation::ContainerCreation, image_volumes, remove::clean, volumes,
};
use crate::{
    clock,
    engine::Engine,
    error::{Result, RuntimeError},
    handler::Handler,
    identifier,
    sandbox::Sandbox,
    table::ReservedName,
};

/// Creates a container and returns its identifier. Rolls back when a step fails.
pub(crate) async fn create(
    engine: Arc<Engine>,
    request: v1::CreateContainerRequest,
) -> Result<String> {
    let id = &request.pod_sandbox_id;
    let found = engine.sandbox(SandboxCall::CreateContainer, id)?;
    let sandbox = found.ok_or_else(|| RuntimeError::sandbox_not_found(id))?;
    // Keeps the sandbox from being stopped or removed meanwhile.
    let _shared = sandbox.calls.read().await;
    sandbox.decision(SandboxCall::CreateContainer)?;

    let mut config = request
        .config
        .ok_or_else(|| RuntimeError::invalid("the request has no config"))?;
    let pod = request
        .sandbox_config
        .ok_or_else(|| RuntimeError::invalid("the request has no sandbox_config"))?;
    let metadata = config
        .metadata
        .clone()
        .ok_or_else(|| RuntimeError::invalid("the container's config has no metadata"))?;
    let image = image(&engine, &config)?;
    let id = identifier::random()
        .map_err(|error| RuntimeError::because("cannot generate an identifier", &error))?;
    let name = ReservedName::Container(names::container(
        &metadata,
        &sandbox_metadata(&sandbox.record()),
    ));
    // A kubelet whose call timed out repeats it, with the same name, while the first one is still
    // running: the second one is refused, as by containerd.
    let reservation = engine.table.reserve(name, &id)?;

    let handler = Handler::of(&engine.settings, &sandbox.record().runtime_handler)?;
    let volumes = volumes::resolve(&engine.images, &handler, &mut config.mounts)?;
    let parent = sandbox.record().cgroup_parent.clone();
    let cgroup =
        runtime_cgroup::container(&parent, &id, engine.facts.driver).map_err(Refusal::from)?;
    let creation = ContainerCreation {
        engine: Arc::clone(&engine),
        sandbox: Arc::clone(&sandbox),
        container: Container::new(
            record(
                &engine, &sandbox, &config, &pod, metadata, &image, &cgroup, id,
            )?,
            &sandbox,
        ),
        config: Arc::new(config),
        pod: Arc::new(pod),
        image,
        volumes,
        cgroup,
        handler,
    };
    let container = Arc::clone(&creation.container);
    // Before the container is a member, and can be found: nobody stops or removes half of it.
    let _call = container.calls.lock().await;
    // Before the shim can report events of it.
    sandbox.add_member(&container);
    if let Err(error) = creation.make().await {
        creation.undo().await;
        return Err(error);
    }
    reservation.keep();
    engine.table.add_container(&container);
    engine.publish(ContainerEventType::ContainerCreatedEvent, &container);
    if container.has_exited() {
        // Its init was killed before the container was published.
        engine.publish(ContainerEventType::ContainerStoppedEvent, &container);
    }
    Ok(container.id.clone())
}

fn image(engine: &Engine, config: &v1::ContainerConfig) -> Result<Arc<Image>> {
    let wanted = config.image.as_ref().map(|image| &*image.image);
    let wanted = wanted.filter(|image| !image.is_empty());
    let wanted =
        wanted.ok_or_else(|| RuntimeError::invalid("the container's config has no image"))?;
    engine.images.find(wanted).ok_or_else(|| {
        RuntimeError::not_found(format!(
            "image {wanted:?} not found on this node: pull it first"
        ))
    })
}

/// The image name for the status: kubelets pass identifiers, users expect names.
fn name_of(image: &Image, wanted: &v1::ImageSpec) -> String {
    let written = [&wanted.image, &wanted.user_specified_image];
    let known = written
        .into_iter()
        .find(|name| image.repo_tags.contains(name));
    known
        .or(image.repo_tags.first())
        .unwrap_or(&wanted.image)
        .clone()
}

#[expect(
    clippy::too_many_arguments,
    reason = "a record is made of many parts, once"
)]
fn record(
    engine: &Engine,
    sandbox: &Sandbox,
    config: &v1::ContainerConfig,
    pod: &v1::PodSandboxConfig,
    metadata: v1::ContainerMetadata,
    image: &Image,
    cgroup: &ContainerCgroup,
    id: String,
) -> Result<ContainerRecord> {
    let wanted = config.image.clone().unwrap_or_default();
    let linux = config.linux.as_ref();
    let limits = linux
        .and_then(|linux| linux.resources.clone())
        .unwrap_or_default();
    let log_path = match (&*pod.log_directory, &*config.log_path) {
        ("", _) | (_, "") => String::new(),
        (dir, file) => PathBuf::from(dir).join(file).to_string_lossy().into_owned(),
    };
    let named = image.repo_digests.first().cloned();
    Ok(ContainerRecord {
        sandbox_id: sandbox.id.clone(),
        boot_id: engine.boot_id.clone(),
        name: metadata.name,
        attempt: metadata.attempt,
        phase: ContainerPhase::Creating,
        created_at: clock::now_ns(),
        started_at: 0,
        exit: None,
        pid: 0,
        image: name_of(image, &wanted),
        user_specified_image: wanted.user_specified_image,
        image_ref: named.unwrap_or_else(|| image.id.to_string()),
        image_id: image.id.to_string(),
        labels: config.labels.clone(),
        annotations: config.annotations.clone(),
        mounts: config.mounts.iter().map(MountRecord::of).collect(),
        log_path,
        tty: config.tty,
        stdin: config.stdin,
        stdin_once: config.stdin_once,
        resources: resources::create(&limits, &engine.facts)?,
        oom_score_adj: resources::oom_score_adj(&limits)?,
        user: UserRecord::default(),
        stop_signal: stop_signal::resolve(config.stop_signal, &image.config.stop_signal)?,
        cgroup: cgroup.path.as_str().to_owned(),
        scope: cgroup
            .scope
            .as_ref()
            .map(|scope| scope.name.clone())
            .unwrap_or_default(),
        id,
    })
}

impl ContainerCreation {
    async fn make(&self) -> Result<()> {
        let (engine, container) = (&self.engine, &self.container);
        let mappings = self.sandbox.record().namespaces.user.clone();
        let layers = engine
            .images
            .prepare_rootfs(&container.id, &self.image.id, mappings.as_ref())
            .await
            .map_err(|error| RuntimeError::because("cannot create the root file system", &error))?;
        let volumes = volumes::hold(&engine.images, &container.id, &self.volumes).await?;
        let image_volumes = image_volumes::make(self, mappings.as_ref()).await?;
        let prepared = bundle::prepare(self, &layers, volumes, image_volumes).await?;
        container.change(|record| record.user = prepared.user.clone());
        let call = self.call(layers, &prepared);
        let answer = self
            .sandbox
            .link()?
            .call(Call::Create(Box::new(call)))
            .await;
        // Whatever the answer: the init is in the scope now, or never will be.
        drop(prepared.holder);
        match answer? {
            ShimReply::Created { pid } => container.change(|record| {
                // The report that the init was killed can be handled before this reply.
                if record.exit.is_none() {
                    record.pid = pid;
                    record.phase = ContainerPhase::Created;
                }
            }),
            other => {
                return Err(RuntimeError::failed(format!(
                    "unexpected reply from the shim: {other:?}"
                )));
            }
        }
        // The record comes last: what has none at the start after a crash was being created, and is
        // removed.
        engine.save_container(container).await
    }

    fn call(&self, layers: RootfsLayers, prepared: &bundle::PreparedBundle) -> CreateContainer {
        let record = self.container.record();
        let (engine, id) = (&self.engine, &self.container.id);
        CreateContainer {
            id: id.clone(),
            bundle: engine.layout.sandbox(&self.sandbox.id).bundle(id),
            runtime: self.handler.choice(&engine.layout, engine.facts.driver),
            rootfs: Rootfs::Overlay {
                lower: layers.lower,
                upper: Some(layers.upper),
                work: Some(layers.work),
            },
            cgroup: self.cgroup.path.clone(),
            log_path: (!record.log_path.is_empty()).then(|| record.log_path.clone().into()),
            stdin: record.stdin,
            stdin_once: record.stdin_once,
            tty: record.tty,
            has_seccomp: prepared.has_seccomp,
            max_log_bytes: engine.settings.max_log_bytes,
            pid_target: bundle::target_id(&self.config).map(str::to_owned),
            max_log_line: 16 << 10,
        }
    }

    /// Rolls back. Anything that can't be undone now is removed at the next start.
    async fn undo(&self) {
        let (engine, container) = (&self.engine, &self.container);
        container.change(|record| record.phase = ContainerPhase::Removing);
        let cleaned = clean(engine, container).await;
        if let Err(error) = cleaned {
            tracing::warn!(container = container.id, %error, "Failed to clean up after a container could not be created");
        }
        self.sandbox.remove_member(&container.id);
    }
}
