//! A runtime that answers what a test says, and keeps what it was asked.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rubelet_cri::{CriError, CriErrorKind, CriResult, RuntimeService, v1};
use rubelet_streaming::{PortDialer, RemoteProcess, Sessions};

#[derive(Default)]
pub(super) struct FakeRuntime {
    pub(super) sandboxes: Mutex<Vec<v1::PodSandbox>>,
    /// The `info` of the verbose status of a sandbox; empty for one that is gone.
    pub(super) info: Mutex<String>,
    /// The URL of streams.
    pub(super) url: Mutex<String>,
    pub(super) output: Mutex<v1::ExecSyncResponse>,
    /// Why it does nothing.
    pub(super) error: Mutex<Option<CriErrorKind>>,
    /// The requests, in words.
    pub(super) asked: Mutex<Vec<String>>,
}

impl FakeRuntime {
    fn asked(&self, call: &'static str, request: String) -> CriResult<()> {
        self.asked.lock().unwrap().push(request);
        match *self.error.lock().unwrap() {
            Some(kind) => Err(CriError::new(call, kind, "as told")),
            None => Ok(()),
        }
    }

    fn url(&self) -> String {
        self.url.lock().unwrap().clone()
    }
}

#[async_trait]
impl RuntimeService for FakeRuntime {
    async fn list_pod_sandbox(
        &self,
        request: v1::ListPodSandboxRequest,
    ) -> CriResult<v1::ListPodSandboxResponse> {
        self.asked("ListPodSandbox", format!("{request:?}"))?;
        let items = self.sandboxes.lock().unwrap().clone();
        Ok(v1::ListPodSandboxResponse { items })
    }

    async fn pod_sandbox_status(
        &self,
        request: v1::PodSandboxStatusRequest,
    ) -> CriResult<v1::PodSandboxStatusResponse> {
        self.asked("PodSandboxStatus", format!("{request:?}"))?;
        let info = self.info.lock().unwrap().clone();
        if info.is_empty() {
            let kind = CriErrorKind::NotFound;
            return Err(CriError::new("PodSandboxStatus", kind, "it is gone"));
        }
        Ok(v1::PodSandboxStatusResponse {
            status: Some(v1::PodSandboxStatus::default()),
            info: [("info".to_owned(), info)].into_iter().collect(),
            ..v1::PodSandboxStatusResponse::default()
        })
    }

    async fn exec(&self, request: v1::ExecRequest) -> CriResult<v1::ExecResponse> {
        self.asked("Exec", format!("{request:?}"))?;
        Ok(v1::ExecResponse { url: self.url() })
    }

    async fn attach(&self, request: v1::AttachRequest) -> CriResult<v1::AttachResponse> {
        self.asked("Attach", format!("{request:?}"))?;
        Ok(v1::AttachResponse { url: self.url() })
    }

    async fn port_forward(
        &self,
        request: v1::PortForwardRequest,
    ) -> CriResult<v1::PortForwardResponse> {
        self.asked("PortForward", format!("{request:?}"))?;
        Ok(v1::PortForwardResponse { url: self.url() })
    }

    async fn exec_sync(&self, request: v1::ExecSyncRequest) -> CriResult<v1::ExecSyncResponse> {
        self.asked("ExecSync", format!("{request:?}"))?;
        Ok(self.output.lock().unwrap().clone())
    }
}

#[async_trait]
impl Sessions for FakeRuntime {
    async fn exec(&self, _: v1::ExecRequest) -> CriResult<RemoteProcess> {
        Err(CriError::unimplemented("Exec"))
    }

    async fn attach(&self, _: v1::AttachRequest) -> CriResult<RemoteProcess> {
        Err(CriError::unimplemented("Attach"))
    }

    async fn port_forward(&self, _: &str) -> CriResult<Arc<dyn PortDialer>> {
        Err(CriError::unimplemented("PortForward"))
    }
}
