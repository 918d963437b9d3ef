//! The runtime as its users hold it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use rubelet_base::ErrorChain;
use rubelet_cri::{CriResult, ImageLoader, ImageService, v1};
use rubelet_host::{CgroupFs, Machine, net_lock::NetLock};
use rubelet_images::ImageStore;
use tokio::sync::Semaphore;

use crate::{
    apparmor,
    container::scope,
    engine::{Engine, THREADS},
    events::EventHub,
    facts,
    image_service::Images,
    layout::Layout,
    ownership::{self, Ownership, OwnershipError},
    recover,
    settings::{CgroupDriver, RuntimeSettings},
    table::Table,
};

/// Where the kernel's cgroups are on every machine.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The embedded runtime. Serves the CRI's services; see the crate.
pub struct EmbeddedRuntime {
    pub(crate) engine: Arc<Engine>,
    images: Images,
}

/// The images of a runtime that does not run.
pub struct StoredImages {
    images: Images,
    _ownership: Ownership,
}

/// Why the runtime can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another runtime uses the same root, run folder or bridge.
    #[error(transparent)]
    Locked(OwnershipError),
    /// The lock can't be taken.
    #[error(transparent)]
    Lock(OwnershipError),
    /// A folder can't be made.
    #[error("cannot create {}", dir.display())]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The machine can't be looked at, or lacks something without which nothing works.
    #[error("this machine can't run containers: {0} (see `rubelet doctor`)")]
    Host(String),
    /// The images can't be opened.
    #[error("cannot open the images")]
    Images(#[from] rubelet_images::OpenError),
    /// What earlier runs left can't be read.
    #[error("cannot take over what was left: {0}")]
    Recovery(String),
}

impl EmbeddedRuntime {
    /// Takes its folders, adopts the pods that run, removes what belongs to nobody, and is ready for
    /// calls.
    ///
    /// # Errors
    /// See [`StartError`]. A single pod that can't be taken over is none: it is stopped.
    pub async fn start(settings: RuntimeSettings) -> Result<Arc<Self>, StartError> {
        let layout = Layout::new(&settings.root, &settings.run);
        make(&layout)?;
        // Two runtimes that share either folder would take each other's pods for leftovers.
        let ownership = [own(layout.root())?, own(layout.run())?];
        let bridge = own_bridge(&settings.network.bridge_name).await?;
        let looked = {
            let (layout, settings) = (layout.clone(), settings.clone());
            tokio::task::spawn_blocking(move || look(&layout, &settings))
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
            table: Arc::new(Table::default()),
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
            .map_err(|fault| StartError::Recovery(fault.message))?;
        Ok(Arc::new(Self {
            engine,
            images: Images(images),
        }))
    }

    /// The images.
    #[must_use]
    pub fn images(&self) -> Arc<ImageStore> {
        Arc::clone(&self.images.0)
    }

    /// Ends the streams of events. Containers go on; the next start adopts them.
    pub async fn shutdown(&self) {
        self.engine.events.close();
    }
}

impl StoredImages {
    /// Opens the images without starting the runtime.
    ///
    /// # Errors
    /// [`StartError::Locked`] while a runtime uses the root: it must be asked instead.
    pub async fn open(settings: &RuntimeSettings) -> Result<Arc<Self>, StartError> {
        let layout = Layout::new(&settings.root, &settings.run);
        make(&layout)?;
        let ownership = own(layout.root())?;
        let store = ImageStore::open(&layout.images(), settings.images.clone()).await?;
        Ok(Arc::new(Self {
            images: Images(store),
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
    made.map_err(|(dir, source)| StartError::Folder { dir, source })
}

/// Takes the lock of a folder. Short enough for any thread.
fn own(folder: &Path) -> Result<Ownership, StartError> {
    ownership::take(folder, &folder.join("lock")).map_err(|error| match error {
        OwnershipError::Taken { .. } | OwnershipError::Bridge { .. } => StartError::Locked(error),
        OwnershipError::File { .. } => StartError::Lock(error),
    })
}

/// Takes the bridge. With a CNI configuration, too: without pods on it a start takes it away.
async fn own_bridge(name: &str) -> Result<Option<NetLock>, StartError> {
    let name = name.to_owned();
    let taken = tokio::task::spawn_blocking(move || ownership::take_bridge(&name)).await;
    taken
        .map_err(|error| StartError::Host(error.to_string()))?
        .map_err(StartError::Locked)
}

/// What the start has to know of the machine.
struct Looked {
    machine: Machine,
    cgroups: CgroupFs,
    facts: rubelet_runtime_plan::host::HostFacts,
}

fn look(layout: &Layout, settings: &RuntimeSettings) -> Result<Looked, StartError> {
    let host =
        |error: &(dyn std::error::Error + 'static)| StartError::Host(ErrorChain(error).to_string());
    let machine = Machine::read(Path::new("/")).map_err(|error| host(&error))?;
    let cgroups = CgroupFs::detect(Path::new(CGROUPS)).map_err(|error| host(&error))?;
    // Also proves that cgroups can be made.
    match settings.cgroup_driver {
        CgroupDriver::Cgroupfs => drop(
            cgroups
                .create(&settings.shim_cgroup)
                .map_err(|error| host(&error))?,
        ),
        CgroupDriver::Systemd => scope::systemd()
            .map_err(|fault| StartError::Host(fault.message))?
            .start(settings.shim_cgroup.name())
            .map_err(|error| host(&error))?,
    }
    let facts = facts::read(
        &machine,
        &cgroups,
        settings.cgroup_driver,
        &settings.shim_cgroup,
    );
    tracing::debug!(root = %layout.root().display(), ?facts, "the machine");
    if facts.apparmor {
        // So that no container waits for it.
        apparmor::profiles_with_own();
    }
    Ok(Looked {
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
