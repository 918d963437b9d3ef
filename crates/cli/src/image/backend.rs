//! Backends of image commands: a running runtime, or the directory of one that does not run.

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
use crate::{agent::Agent, binary::Binary, failure::CommandError, url::Url};

/// Which runtime
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PlaceArgs {
    /// Socket of the runtime; any CRI runtime can be asked [default: cri.sock in the run directory]
    #[arg(long, global = true, value_name = "PATH")]
    runtime_socket: Option<String>,
    /// Directory of the embedded runtime's images, which are used directly when no runtime runs
    #[arg(long, global = true, value_name = "DIRECTORY")]
    runtime_root_dir: Option<String>,
    /// Directory of the embedded runtime's sockets
    #[arg(long, global = true, value_name = "DIRECTORY")]
    runtime_run_dir: Option<String>,
}

impl PlaceArgs {
    /// The backend: as given by the options, or as the running agent is configured, or the
    /// defaults.
    async fn options(&self, agent: &Agent) -> io::Result<StoreLocation> {
        let given = [
            &self.runtime_socket,
            &self.runtime_root_dir,
            &self.runtime_run_dir,
        ];
        if given.iter().all(|given| given.is_none()) {
            // The agent is optional for this command.
            let asked = agent.get(&Url::new("/configz")).await.ok();
            return Ok(asked.map(|config| of_agent(&config)).unwrap_or_default());
        }
        let mut place = StoreLocation::default();
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

/// The locations to try.
#[derive(Default)]
struct StoreLocation {
    options: EmbeddedRuntime,
    /// The socket belongs to a runtime with an unknown image directory.
    only_socket: bool,
}

/// The settings in the agent's configuration.
fn of_agent(config: &Value) -> StoreLocation {
    let config = &config["kubeletconfig"];
    let mut place = StoreLocation::default();
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

/// The name that the embedded runtime reports.
const OWN: &str = "rubelet";

/// A runtime's error about an image, without the name of the CRI call, which the user did not type.
pub(super) fn in_its_words(error: CriError, task: &str, name: &str) -> CommandError {
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

/// Access to images.
pub(super) struct Backend {
    pub(super) images: Arc<dyn ImageService>,
    loader: Loader,
}

enum Loader {
    Socket(Box<CriClient>),
    Own(Arc<StoredImages>, String),
}

impl Backend {
    pub(super) async fn open(
        place: &PlaceArgs,
        agent: &Agent,
        binary: Binary,
    ) -> Result<Self, CommandError> {
        let StoreLocation {
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
            let error = anyhow!(refused).context(format!(
                "cannot connect to the container runtime on {}",
                socket.display()
            ));
            return Err(CommandError::Error(error));
        }
        let settings = (binary.runtime_settings)(&options, "cgroupfs")?;
        let own = StoredImages::open(&settings)
            .await
            .with_context(|| format!("cannot open the images in {}", options.root_dir))?;
        Ok(Self {
            images: Arc::clone(&own) as _,
            loader: Loader::Own(own, options.root_dir),
        })
    }

    fn of_socket(socket: &Path) -> Result<Self, CommandError> {
        let endpoint = socket.to_string_lossy();
        let client = CriClient::connect_lazy(&endpoint, Timeouts::default())?;
        Ok(Self {
            images: Arc::new(client.clone()),
            loader: Loader::Socket(Box::new(client)),
        })
    }

    /// Loads the archive or directory at `path`; messages show it as `name`.
    pub(super) async fn load(&self, path: &Path, name: &str) -> Result<Vec<String>, CommandError> {
        let loaded: CriResult<Vec<String>> = match &self.loader {
            Loader::Socket(client) => client.load_images(path).await,
            Loader::Own(own, _) => own.load(path.to_owned()).await,
        };
        loaded.map_err(|mut error| match error.is_unimplemented() {
            true => anyhow!(
                "the runtime on this socket cannot load archives; only Rubelet's own can (containerd \
                 has `ctr images import`)"
            )
            .into(),
            false => {
                error.message = error.message.replace(&*path.to_string_lossy(), name);
                in_its_words(error, "load", name)
            }
        })
    }

    /// The runtime, if it runs.
    pub(super) fn runtime(&self) -> Option<&dyn RuntimeService> {
        match &self.loader {
            Loader::Socket(client) => Some(&**client),
            Loader::Own(..) => None,
        }
    }

    /// The name of the runtime, if it is not the embedded one: others support nothing beyond the
    /// CRI.
    pub(super) async fn other_runtime(&self) -> Result<Option<String>, CommandError> {
        let Some(runtime) = self.runtime() else {
            return Ok(None);
        };
        let about = runtime.version(v1::VersionRequest::default()).await?;
        Ok(Some(about.runtime_name).filter(|name| name != OWN))
    }

    /// The warning before a change: an agent with other directories does not see it.
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
    ) -> Result<v1::ImageStatusResponse, CommandError> {
        let request = v1::ImageStatusRequest {
            image: spec(name),
            verbose,
        };
        let found = self.images.image_status(request).await;
        let found = found.map_err(|error| in_its_words(error, "look for", name))?;
        match found.image {
            Some(_) => Ok(found),
            None => {
                Err(anyhow!("image {name:?} not found; `rubelet image ls` lists images").into())
            }
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
        // An agent that does not tell has the default directories, as far as anybody knows.
        let silent = of_agent(&json!({ "kubeletconfig": {} })).options;
        assert_eq!(silent, EmbeddedRuntime::default());
    }
}
