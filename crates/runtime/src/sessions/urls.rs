//! `Exec`, `Attach` and `PortForward`: URLs for clients of the CRI.

use rubelet_cri::{CriResult, v1};
use rubelet_streaming::StreamingRequest;

use super::{attach, exec, port_forward};
use crate::{EmbeddedRuntime, error::RuntimeError};

/// A URL at which a command can be started.
pub(crate) async fn exec(
    runtime: &EmbeddedRuntime,
    request: v1::ExecRequest,
) -> CriResult<v1::ExecResponse> {
    exec::admit(&runtime.engine, &request).map_err(RuntimeError::of::<v1::ExecRequest>)?;
    let request = StreamingRequest::Exec(request);
    let url = runtime.streaming.url_for(request).await?;
    Ok(v1::ExecResponse { url })
}

/// A URL at which a container can be attached to.
pub(crate) async fn attach(
    runtime: &EmbeddedRuntime,
    request: v1::AttachRequest,
) -> CriResult<v1::AttachResponse> {
    attach::admit(&runtime.engine, &request).map_err(RuntimeError::of::<v1::AttachRequest>)?;
    let request = StreamingRequest::Attach(request);
    let url = runtime.streaming.url_for(request).await?;
    Ok(v1::AttachResponse { url })
}

/// A URL at which ports of a pod can be connected to.
pub(crate) async fn port_forward(
    runtime: &EmbeddedRuntime,
    request: v1::PortForwardRequest,
) -> CriResult<v1::PortForwardResponse> {
    port_forward::dialer(&runtime.engine, &request.pod_sandbox_id)
        .map_err(RuntimeError::of::<v1::PortForwardRequest>)?;
    let request = StreamingRequest::PortForward(request);
    let url = runtime.streaming.url_for(request).await?;
    Ok(v1::PortForwardResponse { url })
}
