//! The RPC that loads images from a file.

use std::{path::PathBuf, sync::Arc};

use http::Request;
use hyper::body::Incoming;
use rubelet_cri::ImageLoader;
use tonic::{
    Response, Status,
    codegen::BoxFuture,
    server::{Grpc, UnaryService},
};
use tonic_prost::ProstCodec;

use crate::{
    loader::{LoadRequest, LoadResponse},
    status::status_from,
};

struct Load(Arc<dyn ImageLoader>);

impl UnaryService<LoadRequest> for Load {
    type Response = LoadResponse;
    type Future = BoxFuture<Response<LoadResponse>, Status>;

    fn call(&mut self, request: tonic::Request<LoadRequest>) -> Self::Future {
        let loader = Arc::clone(&self.0);
        Box::pin(async move {
            let path = PathBuf::from(request.into_inner().path);
            let images = loader.load(path).await.map_err(status_from)?;
            Ok(Response::new(LoadResponse { images }))
        })
    }
}

/// Answers one request.
pub(super) async fn answer(
    loader: Arc<dyn ImageLoader>,
    request: Request<Incoming>,
) -> http::Response<tonic::body::Body> {
    Grpc::new(ProstCodec::default())
        .unary(Load(loader), request)
        .await
}
