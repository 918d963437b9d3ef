//! Loads images from a file over the socket: a Rubelet RPC beside the CRI's services.
//!
//! `rubelet.runtime.v1.Images/Load` takes the path of an archive on the runtime's machine. Only
//! root can connect to the socket, so the path exposes no file to others.

use http::{Uri, uri::PathAndQuery};
use rubelet_cri::CriResult;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;

use crate::{channel::Channel, status::error_from};

/// The path of the RPC.
pub(crate) const METHOD: &str = "/rubelet.runtime.v1.Images/Load";
/// Its name in errors.
const NAME: &str = "LoadImage";

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LoadRequest {
    #[prost(string, tag = "1")]
    pub(crate) path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LoadResponse {
    #[prost(string, repeated, tag = "1")]
    pub(crate) images: Vec<String>,
}

/// Sends the request to the runtime. The time depends on the archive's size.
pub(crate) async fn ask(channel: Channel, origin: Uri, path: String) -> CriResult<Vec<String>> {
    let ask = async {
        let mut client = Grpc::with_origin(channel, origin);
        client.ready().await?;
        let codec = ProstCodec::<LoadRequest, LoadResponse>::default();
        let request = tonic::Request::new(LoadRequest { path });
        let method = PathAndQuery::from_static(METHOD);
        client.unary(request, method, codec).await
    };
    match ask.await {
        Ok(answer) => Ok(answer.into_inner().images),
        Err(status) => Err(error_from(NAME, &status, None)),
    }
}
