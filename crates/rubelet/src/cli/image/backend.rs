//! Where the images are: in a runtime that runs, or in the folder of one that doesn't.

use std::{
    io,
    os::unix::net::UnixStream,
    path::{self, Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use rubelet_config::EmbeddedRuntime;
use rubelet_cri::{
    CriError, CriErrorKind, CriResult, ImageLoader, ImageService, RuntimeService, v1,
};
use rubelet_cri_grpc::{CriClient, Timeouts};
use rubelet_runtime::StoredImages;
use serde_json::Value;

use super::spec;
use crate::{
    cli::{agent::Agent, failure::Failure, url::Url},
    run::embedded,
};

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
    /// Where the images are: as it is said here, or as the running agent has it, or where they are
    /// by default.
    async fn options(&self, agent: &Agent) -> io::Result<Place> {
        let given = [
            &self.runtime_socket,
            &self.runtime_root_dir,
            &self.runtime_run_dir,
        ];
        if given.iter().all(|given| given.is_none()) {
            // Nobody needs to run for this command.
            let asked = agent.get(&Url::new("/configz")).await.ok();
            return Ok(asked.map(|config| of_agent(&config)).unwrap_or_default());
        }
        let mut place = Place::default();
        let options = &mut place.options;
        for (given, option) in [
            (&self.runtime_root_dir, &mut options.root_dir),
            (&self.runtime_run_dir, &mut options.run_dir),
        ] {
            if let Some(given) = given {
                *option = path::absolute(given)?.to_string_lossy().into_owned();
            }
        }
        if let Some(socket) = &self.runtime_socket {
            let path = socket.strip_prefix("unix://").unwrap_or(socket);
            options.socket = path::absolute(path)?.to_string_lossy().into_owned();
            place.only_socket = true;
        }
        Ok(place)
    }
}

/// Where to look for images.
#[derive(Default)]
struct Place {
    options: EmbeddedRuntime,
    /// The socket is that of a runtime whose folder nobody knows.
    only_socket: bool,
}

/// What the agent's configuration says.
fn of_agent(config: &Value) -> Place {
    let config = &config["kubeletconfig"];
    let mut place = Place::default();
    let endpoint = config["containerRuntimeEndpoint"].as_str();
    if let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.is_empty()) {
        let path = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
        path.clone_into(&mut place.options.socket);
        place.only_socket = true;
        return place;
    }
    let runtime = &config["rubelet"]["runtime"];
    if let Ok(options) = serde_json::from_value(runtime.clone()) {
        place.options = options;
    }
    place
}

/// What our own runtime calls itself.
const OWN: &str = "rubelet";

/// What a runtime said of an image, without the name of a call that nobody typed.
pub(super) fn in_its_words(error: CriError, task: &str, name: &str) -> Failure {
    let silent = matches!(
        error.kind,
        CriErrorKind::Unavailable | CriErrorKind::DeadlineExceeded(_) | CriErrorKind::Canceled
    );
    if silent || error.message.is_empty() {
        return error.into();
    }
    match error.message.contains(name) {
        true => anyhow!(error.message).into(),
        false => anyhow!("cannot {task} {name}: {}", error.message).into(),
    }
}

/// Somebody who has images.
pub(super) struct Backend {
    pub(super) images: Arc<dyn ImageService>,
    loader: Loader,
}

enum Loader {
    Socket(Box<CriClient>),
    Own(Arc<StoredImages>, String),
}

impl Backend {
    pub(super) async fn open(place: &PlaceArgs, agent: &Agent) -> Result<Self, Failure> {
        let Place {
            options,
            only_socket,
        } = place.options(agent).await?;
        let socket = options.socket_path().map(PathBuf::from);
        let refused = match &socket {
            Some(socket) => match UnixStream::connect(socket) {
                Ok(_) => return Self::of_socket(socket),
                Err(error) => error,
            },
            None => io::ErrorKind::NotFound.into(),
        };
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        if only_socket || !absent.contains(&refused.kind()) {
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
            loader: Loader::Own(own, options.root_dir),
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

    /// Loads the archive or folder at `path`, which people know as `name`.
    pub(super) async fn load(&self, path: &Path, name: &str) -> Result<Vec<String>, Failure> {
        let loaded: CriResult<Vec<String>> = match &self.loader {
            Loader::Socket(client) => client.load_images(path).await,
            Loader::Own(own, _) => own.load(path.to_owned()).await,
        };
        loaded.map_err(|mut error| match error.is_unimplemented() {
            true => anyhow!(
                "the runtime on this socket can't load archives; only Rubelet's own can (containerd \
                 has `ctr images import`)"
            )
            .into(),
            false => {
                error.message = error.message.replace(&*path.to_string_lossy(), name);
                in_its_words(error, "load", name)
            }
        })
    }

    /// The runtime, if one runs.
    pub(super) fn runtime(&self) -> Option<&dyn RuntimeService> {
        match &self.loader {
            Loader::Socket(client) => Some(&**client),
            Loader::Own(..) => None,
        }
    }

    /// The name of the runtime, if it is none of our own: that knows nothing beyond the CRI.
    pub(super) async fn other_runtime(&self) -> Result<Option<String>, Failure> {
        let Some(runtime) = self.runtime() else {
            return Ok(None);
        };
        let about = runtime.version(v1::VersionRequest::default()).await?;
        Ok(Some(about.runtime_name).filter(|name| name != OWN))
    }

    /// What to tell people before a change: an agent with other folders does not see it.
    pub(super) fn place(&self) -> Option<String> {
        match &self.loader {
            Loader::Socket(_) => None,
            Loader::Own(_, root) => Some(format!(
                "no runtime answers on its socket: the images in {root} are changed directly"
            )),
        }
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
        let found = self.images.image_status(request).await;
        let found = found.map_err(|error| in_its_words(error, "look for", name))?;
        match found.image {
            Some(_) => Ok(found),
            None => Err(anyhow!(
                "there is no image {name:?}; `rubelet image ls` lists those that are there"
            )
            .into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_agents_configuration_says_where_its_images_are() {
        let options = EmbeddedRuntime {
            root_dir: "/srv/rt".to_owned(),
            run_dir: "/run/rt".to_owned(),
            ..EmbeddedRuntime::default()
        };
        let own = json!({ "kubeletconfig": { "rubelet": { "runtime": options } } });
        let place = of_agent(&own);
        assert_eq!(place.options, options);
        assert!(!place.only_socket);
        let mut other = own;
        let endpoint = "unix:///run/containerd/containerd.sock";
        other["kubeletconfig"]["containerRuntimeEndpoint"] = endpoint.into();
        let place = of_agent(&other);
        let socket = place.options.socket_path();
        assert_eq!(socket.as_deref(), Some("/run/containerd/containerd.sock"));
        assert!(place.only_socket);
        // An agent that does not tell has the default folders, as far as anybody knows.
        let silent = of_agent(&json!({ "kubeletconfig": {} })).options;
        assert_eq!(silent, EmbeddedRuntime::default());
    }
}
