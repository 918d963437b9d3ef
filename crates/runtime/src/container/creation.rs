//! The data that the steps of a container's creation share.

use std::sync::Arc;

use rubelet_cgroup_plan::ContainerCgroup;
use rubelet_cri::v1;
use rubelet_images::{Image, ImageId};

use super::Container;
use crate::{engine::Engine, handler::Handler, sandbox::Sandbox};

/// A container in creation.
pub(super) struct ContainerCreation {
    pub(super) engine: Arc<Engine>,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) container: Arc<Container>,
    pub(super) config: Arc<v1::ContainerConfig>,
    pub(super) pod: Arc<v1::PodSandboxConfig>,
    pub(super) image: Arc<Image>,
    /// The images that it mounts, in the order of its mounts.
    pub(super) volumes: Vec<ImageId>,
    pub(super) cgroup: ContainerCgroup,
    pub(super) handler: Handler,
}
