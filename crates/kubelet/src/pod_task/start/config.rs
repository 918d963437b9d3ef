//! Builds the configuration of a container.

use std::sync::Arc;

use rubelet_api::container::{Container, RecursiveReadOnly};
use rubelet_base::ContainerId;
use rubelet_cri::v1;
use rubelet_node_state::objects::{CONFIG_ERROR, ObjectRefs};
use rubelet_node_state::start_failure::StartFailure;
use rubelet_pod_plan::{
    ContainerPhase,
    cri_config::{ContainerInputs, container_config, env, mounts, verify_non_root},
    pod_ips::in_family_order,
};

use super::ContainerImages;
use crate::pod_task::PodTask;

impl PodTask {
    pub(super) async fn container_config(
        &mut self,
        container: &Container,
        count: u32,
        images: ContainerImages,
    ) -> Result<v1::ContainerConfig, StartFailure> {
        let ContainerImages {
            own: image,
            volumes,
        } = images;
        let config_error = |message: String| StartFailure::new(CONFIG_ERROR, message);
        verify_non_root(&self.pod, container, &image.user).map_err(|error| {
            let (name, uid) = (&self.pod.name, &self.pod.uid);
            config_error(format!(
                "{error} (pod: \"{}_{}({uid})\", container: {})",
                name.name, name.namespace, container.name
            ))
        })?;
        let target = self.target_of(container).map_err(config_error)?;
        let context = Arc::clone(&self.context);
        let host = &context.host;
        let pod_ips = self.pod_ips();
        let refs = ObjectRefs::Environment(container);
        let objects = self
            .object_changes
            .read(&*context.objects, &self.pod, refs)
            .await;
        let objects = objects.map_err(|error| config_error(error.message))?;
        let mut env_context = host.env_context(pod_ips.clone());
        env_context.files = host
            .env_files(&self.pod, &container.name)
            .await
            .map_err(|error| config_error(error.message))?;
        let values = env::environment(&self.pod, container, &env_context, &objects)
            .map_err(|error| config_error(error.to_string()))?;
        // After the environment: a `subPathExpr` refers to its variables.
        let mut files = host
            .container_files(&self.pod, &container.name, &values, &pod_ips)
            .await
            .map_err(|error| config_error(error.message))?;
        files.images = volumes;
        let mut modes = container
            .mounts
            .iter()
            .map(|mount| mount.recursive_read_only);
        if modes.any(|mode| mode != RecursiveReadOnly::Disabled) {
            let handler = self.runtime_handler().await;
            let (_, features) = handler.map_err(|error| config_error(error.message))?;
            files.recursive_read_only =
                features.is_some_and(|features| features.recursive_read_only_mounts);
        }
        let mounts = mounts(&self.pod, container, &files)
            .map_err(|error| config_error(error.to_string()))?;
        let (seccomp_root, seccomp_default) = host.seccomp();
        Ok(container_config(
            &self.pod,
            container,
            ContainerInputs {
                restart_count: count,
                image_id: image.id,
                image_user: image.user,
                env: values,
                mounts,
                resources: host.resources(&self.pod, container),
                seccomp_default,
                seccomp_root,
                target,
                users: files.users,
                thermal_throttle: host.thermal_throttle(),
            },
        ))
    }

    /// The target container of an ephemeral container, whose process namespace it shares.
    fn target_of(&self, container: &Container) -> Result<Option<ContainerId>, String> {
        let mut ephemeral = self.pod.spec.ephemeral_containers.iter();
        let one = ephemeral.find(|one| one.container.name == container.name);
        let Some(target) = one.and_then(|one| one.target.as_deref()) else {
            return Ok(None);
        };
        let found = self
            .observed
            .newest(target)
            .ok_or_else(|| format!("unable to find target container {target}"))?;
        match found.phase {
            ContainerPhase::Running { .. } => Ok(Some(found.id.clone())),
            _ => Err(format!("target container {target} is not running")),
        }
    }

    fn pod_ips(&self) -> Vec<Box<str>> {
        if self.pod.spec.host_network {
            return self.context.node_ips.texts();
        }
        self.observed
            .ready_sandbox()
            .map(|sandbox| in_family_order(&sandbox.ips, &self.context.node_ips.texts()))
            .unwrap_or_default()
    }
}
