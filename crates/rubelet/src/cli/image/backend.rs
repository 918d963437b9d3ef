//! Where the images are: in a runtime that runs, or in the folder of one that doesn't.

use std::{
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use rubelet_config::EmbeddedRuntime;
use rubelet_cri::{CriResult, ImageLoader, ImageService, v1};
use rubelet_cri_grpc::{CriClient, Timeouts};
use rubelet_runtime::StoredImages;

use super::spec;
use crate::{cli::failure::Failure, run::embedded};

/// Which runtime
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PlaceArgs {
    /// Socket of the runtime; any CRI runtime can be asked [default: cri.sock in the run folder]
    #[arg(long, global = true, value_name = "PATH")]
    runtime_socket: Option<String>,
    /// Folder of the embedded runtime's images, which are used directly when no runtime runs
    #[arg(long, global = true, value_name = "FOLDER")]
    runtime_root_dir: Option<String>,
    /// Folder of the embedded runtime's sockets
    #[arg(long, global = true, value_name = "FOLDER")]
    runtime_run_dir: Option<String>,
}

impl PlaceArgs {
    fn options(&self) -> EmbeddedRuntime {
        let mut options = EmbeddedRuntime::default();
        if let Some(root) = &self.runtime_root_dir {
            options.root_dir.clone_from(root);
        }
        if let Some(run) = &self.runtime_run_dir {
            options.run_dir.clone_from(run);
        }
        if let Some(socket) = &self.runtime_socket {
            let path = socket.strip_prefix("unix://").unwrap_or(socket);
            path.clone_into(&mut options.socket);
        }
        options
    }
}

/// Somebody who has images.
pub(super) struct Backend {
    pub(super) images: Arc<dyn ImageService>,
    loader: Loader,
}

enum Loader {
    Socket(Box<CriClient>),
    Own(Arc<StoredImages>),
}

impl Backend {
    pub(super) async fn open(place: &PlaceArgs) -> Result<Self, Failure> {
        let options = place.options();
        let socket = options.socket_path().map(PathBuf::from);
        let refused = match &socket {
            Some(socket) => match UnixStream::connect(socket) {
                Ok(_) => return Self::of_socket(socket),
                Err(error) => error,
            },
            None => io::ErrorKind::NotFound.into(),
        };
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        if place.runtime_socket.is_some() || !absent.contains(&refused.kind()) {
            let socket = socket.unwrap_or_default();
            let error = anyhow!(refused)
                .context(format!("no runtime can be reached on {}", socket.display()));
            return Err(Failure::Error(error));
        }
        let settings = embedded::settings(&options, "cgroupfs")?;
        let own = StoredImages::open(&settings)
            .await
            .with_context(|| format!("cannot open the images in {}", options.root_dir))?;
        Ok(Self {
            images: Arc::clone(&own) as _,
            loader: Loader::Own(own),
        })
    }

    fn of_socket(socket: &Path) -> Result<Self, Failure> {
        let endpoint = socket.to_string_lossy();
        let client = CriClient::connect_lazy(&endpoint, Timeouts::default())?;
        Ok(Self {
            images: Arc::new(client.clone()),
            loader: Loader::Socket(Box::new(client)),
        })
    }

    pub(super) async fn load(&self, path: &Path) -> Result<Vec<String>, Failure> {
        let loaded: CriResult<Vec<String>> = match &self.loader {
            Loader::Socket(client) => client.load_images(path).await,
            Loader::Own(own) => own.load(path.to_owned()).await,
        };
        loaded.map_err(|error| match error.is_unimplemented() {
            true => anyhow!(
                "the runtime on this socket can't load archives; only Rubelet's own can (containerd \
                 has `ctr images import`)"
            )
            .into(),
            false => error.into(),
        })
    }

    /// The image of a name or identifier.
    pub(super) async fn find(
        &self,
        name: &str,
        verbose: bool,
    ) -> Result<v1::ImageStatusResponse, Failure> {
        let request = v1::ImageStatusRequest {
            image: spec(name),
            verbose,
        };
        let found = self.images.image_status(request).await?;
        match found.image {
            Some(_) => Ok(found),
            None => Err(anyhow!(
                "there is no image {name:?}; `rubelet image ls` lists those that are there"
            )
            .into()),
        }
    }
}
