//! The runtime's public handle.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use rubelet_base::ErrorChain;
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cri::{CriResult, ImageLoader, ImageService, v1};
use rubelet_host::{CgroupFs, Machine, net_lock::NetLock};
use rubelet_images::{ImageStore, VolumeCopy};
use rubelet_streaming::StreamingServer;
use tokio::sync::{Semaphore, watch};

use crate::{
    apparmor,
    container::scope,
    engine::{Engine, THREADS},
    events::EventHub,
    facts,
    image_service::CriImageService,
    layout::Layout,
    ownership::{self, Ownership, OwnershipError},
    recover,
    settings::RuntimeSettings,
    table::ObjectTable,
};

/// Mount point of the cgroup file systems.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The embedded runtime. Implements the CRI services; see the crate's documentation.
pub struct EmbeddedRuntime {
    pub(crate) engine: Arc<Engine>,
    images: CriImageService,
    /// Serves the URLs that clients of the CRI get for sessions.
    pub(crate) streaming: Arc<StreamingServer>,
}

/// The image store of a runtime that is not running.
pub struct StoredImages {
    images: CriImageService,
    _ownership: Ownership,
}

/// Why the runtime can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another runtime uses the same root, run directory or bridge.
    #[error(transparent)]
    Locked(OwnershipError),
    /// The lock can't be taken.
    #[error(transparent)]
    Lock(OwnershipError),
    /// A directory can't be created.
    #[error("cannot create {}", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The machine can't be inspected, or lacks something that every container needs.
    #[error("this machine cannot run containers: {0} (see `rubelet doctor`)")]
    Host(String),
    /// The images can't be opened.
    #[error("cannot open the image store")]
    Images(#[from] rubelet_images::OpenError),
    /// The state of the previous run can't be read.
    #[error("cannot recover the state of the previous run: {0}")]
    Recovery(String),
}

impl EmbeddedRuntime {
    /// Locks its directories, adopts running pods and removes leftovers. Serves calls when this
    /// returns.
    ///
    /// # Errors
    /// See [`StartError`]. A single pod that can't be adopted is stopped and is not an error.
    pub async fn start(settings: RuntimeSettings) -> Result<Arc<Self>, StartError> {
        let layout = Layout::new(&settings.root, &settings.run);
        make(&layout)?;
        // Two runtimes that share either directory would remove each other's pods as leftovers.
        let ownership = [
            lock_directory(layout.root())?,
            lock_directory(layout.run())?,
        ];
        let bridge = lock_bridge(&settings.network.bridge_name).await?;
        let looked = {
            let (layout, settings) = (layout.clone(), settings.clone());
            tokio::task::spawn_blocking(move || probe_host(&layout, &settings))
        };
        let looked = looked
            .await
            .map_err(|error| StartError::Host(error.to_string()))??;
        let images = ImageStore::open(&layout.images(), settings.images.clone()).await?;
        let engine = Arc::new(Engine {
            network: rubelet_cni::network(settings.network.clone()),
            facts: looked.facts,
            boot_id: looked.machine.boot_id,
            cgroups: looked.cgroups,
            images: Arc::clone(&images),
            events: EventHub::default(),
            table: Arc::new(ObjectTable::default()),
            threads: Semaphore::new(THREADS),
            filters: Default::default(),
            paths: Default::default(),
            _ownership: ownership,
            _bridge: bridge,
            layout,
            settings,
        });
        recover::recover(&engine)
            .await
            .map_err(|error| StartError::Recovery(error.message))?;
        Ok(Arc::new_cyclic(|runtime: &Weak<Self>| Self {
            engine,
            images: CriImageService(images),
            streaming: StreamingServer::new(runtime.clone()),
        }))
    }

    /// The images.
    #[must_use]
    pub fn images(&self) -> Arc<ImageStore> {
        Arc::clone(&self.images.0)
    }

    /// The containers of a pod whose images' volumes are being copied, by name.
    #[must_use]
    pub fn volume_copies(&self, pod_uid: &str) -> Vec<(String, VolumeCopy)> {
        let sandboxes = self.engine.table.sandboxes().into_iter();
        let of_pod = sandboxes.filter(|sandbox| sandbox.record().uid == pod_uid);
        let members = of_pod.flat_map(|sandbox| sandbox.members());
        let copies = members.filter_map(|container| {
            let copy = self.images.0.volume_copy(&container.id)?;
            Some((container.record().name.clone(), copy))
        });
        copies.collect()
    }

    /// Changes with each event of a container or sandbox.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.engine.events.changes()
    }

    /// Changes whenever a session of a client of the CRI has ended.
    #[must_use]
    pub fn ended_sessions(&self) -> watch::Receiver<u64> {
        self.streaming.ended_sessions()
    }

    /// Ends the event streams and the sessions of the streaming server. Containers keep running; the next start adopts them.
    pub async fn shutdown(&self) {
        self.engine.events.close();
        self.streaming.stop();
    }
}

impl StoredImages {
    /// Opens the images without starting the runtime.
    ///
    /// # Errors
    /// [`StartError::Locked`] while a runtime uses the root: call that runtime instead.
    pub async fn open(settings: &RuntimeSettings) -> Result<Arc<Self>, StartError> {
        let layout = Layout::new(&settings.root, &settings.run);
        make(&layout)?;
        let ownership = lock_directory(layout.root())?;
        let store = ImageStore::open(&layout.images(), settings.images.clone()).await?;
        Ok(Arc::new(Self {
            images: CriImageService(store),
            _ownership: ownership,
        }))
    }

    /// The images.
    #[must_use]
    pub fn images(&self) -> Arc<ImageStore> {
        Arc::clone(&self.images.0)
    }
}

fn make(layout: &Layout) -> Result<(), StartError> {
    let made = layout.make();
    made.map_err(|(dir, source)| StartError::Directory { dir, source })
}

/// Locks a directory. Does not block.
fn lock_directory(directory: &Path) -> Result<Ownership, StartError> {
    ownership::take(directory, &directory.join("lock")).map_err(|error| match error {
        OwnershipError::Taken { .. } | OwnershipError::Bridge { .. } => StartError::Locked(error),
        OwnershipError::File { .. } => StartError::Lock(error),
    })
}

/// Locks the bridge. With a CNI configuration, too, because the start then removes an unused
/// bridge.
async fn lock_bridge(name: &str) -> Result<Option<NetLock>, StartError> {
    let name = name.to_owned();
    let taken = tokio::task::spawn_blocking(move || ownership::take_bridge(&name)).await;
    taken
        .map_err(|error| StartError::Host(error.to_string()))?
        .map_err(StartError::Locked)
}

/// The state of the machine that the start needs.
struct HostState {
    machine: Machine,
    cgroups: CgroupFs,
    facts: rubelet_runtime_plan::host::HostFacts,
}

fn probe_host(layout: &Layout, settings: &RuntimeSettings) -> Result<HostState, StartError> {
    let host =
        |error: &(dyn std::error::Error + 'static)| StartError::Host(ErrorChain(error).to_string());
    let machine = Machine::read(Path::new("/")).map_err(|error| host(&error))?;
    let cgroups = CgroupFs::detect(Path::new(CGROUPS)).map_err(|error| host(&error))?;
    // Also checks that cgroups can be created.
    match settings.cgroup_driver {
        CgroupDriver::Cgroupfs => drop(
            cgroups
                .create(&settings.shim_cgroup)
                .map_err(|error| host(&error))?,
        ),
        CgroupDriver::Systemd => scope::systemd()
            .map_err(|error| StartError::Host(error.message))?
            .start(settings.shim_cgroup.name())
            .map_err(|error| host(&error))?,
    }
    let facts = facts::read(
        &machine,
        &cgroups,
        settings.cgroup_driver,
        &settings.shim_cgroup,
    );
    tracing::debug!(root = %layout.root().display(), ?facts, "Detected host features");
    if facts.apparmor {
        // Loaded here so that the first container does not wait for it.
        apparmor::profiles_with_own();
    }
    Ok(HostState {
        machine,
        cgroups,
        facts,
    })
}

macro_rules! images {
    ($($type:ident),*) => {$(
        #[async_trait]
        impl ImageService for $type {
            async fn list_images(
                &self,
                request: v1::ListImagesRequest,
            ) -> CriResult<v1::ListImagesResponse> {
                self.images.list_images(request).await
            }

            async fn image_status(
                &self,
                request: v1::ImageStatusRequest,
            ) -> CriResult<v1::ImageStatusResponse> {
                self.images.image_status(request).await
            }

            async fn pull_image(
                &self,
                request: v1::PullImageRequest,
            ) -> CriResult<v1::PullImageResponse> {
                self.images.pull_image(request).await
            }

            async fn remove_image(
                &self,
                request: v1::RemoveImageRequest,
            ) -> CriResult<v1::RemoveImageResponse> {
                self.images.remove_image(request).await
            }

            async fn image_fs_info(
                &self,
                request: v1::ImageFsInfoRequest,
            ) -> CriResult<v1::ImageFsInfoResponse> {
                self.images.image_fs_info(request).await
            }
        }

        #[async_trait]
        impl ImageLoader for $type {
            async fn load(&self, path: PathBuf) -> CriResult<Vec<String>> {
                self.images.load(path).await
            }
        }
    )*};
}

images!(EmbeddedRuntime, StoredImages);
