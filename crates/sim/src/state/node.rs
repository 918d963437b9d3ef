//! The runtime as a whole: up or down, ready or not, version and status.

use rubelet_cri::v1;

use super::{RuntimeError, SimState};
use crate::EntryKind;

pub(crate) struct Node {
    pub(crate) up: bool,
    pub(crate) boots: u64,
    pub(crate) ready: bool,
    pub(crate) network_ready: bool,
    pub(crate) cgroup_driver: v1::CgroupDriver,
    pub(crate) pod_cidr: String,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            up: true,
            boots: 1,
            ready: true,
            network_ready: true,
            cgroup_driver: v1::CgroupDriver::Cgroupfs,
            pod_cidr: String::new(),
        }
    }
}

impl SimState {
    pub(crate) fn set_down(&mut self, down: bool) {
        if self.node.up != down {
            return;
        }
        self.node.up = !down;
        if down {
            self.forget_events();
            self.record(EntryKind::RuntimeDown);
        } else {
            self.node.boots += 1;
            self.record(EntryKind::RuntimeUp);
        }
    }

    pub(crate) fn version(
        &mut self,
        request: &v1::VersionRequest,
    ) -> Result<v1::VersionResponse, RuntimeError> {
        Ok(v1::VersionResponse {
            version: request.version.clone(),
            runtime_name: "rubelet-sim".to_owned(),
            runtime_version: "1.0.0".to_owned(),
            runtime_api_version: "v1".to_owned(),
        })
    }

    pub(crate) fn status(
        &mut self,
        _: &v1::StatusRequest,
    ) -> Result<v1::StatusResponse, RuntimeError> {
        let condition = |name: &str, status: bool, reason: &str, message: &str| {
            let (reason, message) = if status { ("", "") } else { (reason, message) };
            v1::RuntimeCondition {
                r#type: name.to_owned(),
                status,
                reason: reason.to_owned(),
                message: message.to_owned(),
            }
        };
        let Node {
            ready,
            network_ready,
            ..
        } = self.node;
        let conditions = vec![
            condition("RuntimeReady", ready, "RuntimeNotReady", "not ready"),
            condition(
                "NetworkReady",
                network_ready,
                "NetworkPluginNotReady",
                "Network plugin returns error: cni plugin not initialized",
            ),
        ];
        Ok(v1::StatusResponse {
            status: Some(v1::RuntimeStatus { conditions }),
            runtime_handlers: vec![v1::RuntimeHandler::default()],
            ..Default::default()
        })
    }

    pub(crate) fn runtime_config(
        &mut self,
        _: &v1::RuntimeConfigRequest,
    ) -> Result<v1::RuntimeConfigResponse, RuntimeError> {
        let mut linux = v1::LinuxRuntimeConfiguration::default();
        linux.set_cgroup_driver(self.node.cgroup_driver);
        Ok(v1::RuntimeConfigResponse { linux: Some(linux) })
    }

    pub(crate) fn update_runtime_config(
        &mut self,
        request: &v1::UpdateRuntimeConfigRequest,
    ) -> Result<v1::UpdateRuntimeConfigResponse, RuntimeError> {
        let config = request.runtime_config.clone().unwrap_or_default();
        self.node.pod_cidr = config.network_config.unwrap_or_default().pod_cidr;
        Ok(v1::UpdateRuntimeConfigResponse::default())
    }
}
