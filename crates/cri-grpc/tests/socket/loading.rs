//! Images are loaded from files through the socket of a runtime of our own, and of no other.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use rubelet_cri::{CriError, CriErrorKind, CriResult, ImageLoader};
use rubelet_cri_grpc::{CriClient, Timeouts, serve_loading};
use tokio::net::UnixListener;

use crate::runtime::{Scripted, Served};

struct OneImage;

#[async_trait]
impl ImageLoader for OneImage {
    async fn load(&self, path: PathBuf) -> CriResult<Vec<String>> {
        match path == Path::new("/images/a.tar") {
            true => Ok(vec!["a:1".to_owned(), "b:2".to_owned()]),
            false => Err(CriError::new(
                "LoadImage",
                CriErrorKind::NotFound,
                format!("no {}", path.display()),
            )),
        }
    }
}

#[tokio::test]
async fn a_file_is_loaded_and_its_images_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("cri.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let runtime = Arc::new(Scripted::default());
    let server = tokio::spawn(serve_loading(
        listener,
        Arc::clone(&runtime) as _,
        runtime,
        Some(Arc::new(OneImage)),
        std::future::pending(),
    ));
    let client = CriClient::connect_lazy(&socket.to_string_lossy(), Timeouts::default()).unwrap();
    let loaded = client.load_images(Path::new("/images/a.tar")).await;
    assert_eq!(loaded.unwrap(), ["a:1", "b:2"]);
    let missing = client.load_images(Path::new("/images/b.tar")).await;
    let error = missing.expect_err("there is none");
    assert!(error.is_not_found());
    assert_eq!(error.message, "no /images/b.tar");
    server.abort();
}

#[tokio::test]
async fn another_runtime_does_not_know_how_to_load() {
    let served = Served::new();
    let answer = served.client.load_images(Path::new("/images/a.tar")).await;
    assert!(answer.expect_err("it can't").is_unimplemented());
}
