//! `rubelet image` in front of a runtime on a socket.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use async_trait::async_trait;
use rubelet_cri::{
    CriError, CriErrorKind, CriResult, ImageLoader, ImageService, RuntimeService, v1,
};
use rubelet_cri_grpc::serve_loading;
use tempfile::TempDir;
use tokio::{net::UnixListener, sync::oneshot};

use super::fixture::{Ended, Screens, type_words};

const ID: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

const GONE: &str = "Untagged: example.com/busybox:1\nDeleted: \
     sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";

/// One image, and whatever is loaded or pulled.
#[derive(Default)]
struct Images {
    removed: Mutex<Vec<String>>,
    pulled: Mutex<Vec<v1::PullImageRequest>>,
    is_other: std::sync::atomic::AtomicBool,
    containers: Mutex<Vec<v1::Container>>,
}

impl Images {
    fn busybox() -> v1::Image {
        v1::Image {
            id: ID.to_owned(),
            repo_tags: vec!["example.com/busybox:1".to_owned()],
            size: 4_300_000,
            ..Default::default()
        }
    }
}

#[async_trait]
impl RuntimeService for Images {
    async fn version(&self, _: v1::VersionRequest) -> CriResult<v1::VersionResponse> {
        let is_other = self.is_other.load(std::sync::atomic::Ordering::Relaxed);
        Ok(v1::VersionResponse {
            runtime_name: if is_other { "another" } else { "rubelet" }.to_owned(),
            ..Default::default()
        })
    }

    async fn list_containers(
        &self,
        _: v1::ListContainersRequest,
    ) -> CriResult<v1::ListContainersResponse> {
        let containers = self.containers.lock().unwrap().clone();
        Ok(v1::ListContainersResponse { containers })
    }

    async fn container_status(
        &self,
        request: v1::ContainerStatusRequest,
    ) -> CriResult<v1::ContainerStatusResponse> {
        let mounted = request.container_id == "mounts";
        let mount = v1::Mount {
            image: Some(v1::ImageSpec {
                image: ID.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let status = v1::ContainerStatus {
            mounts: mounted.then_some(mount).into_iter().collect(),
            ..Default::default()
        };
        Ok(v1::ContainerStatusResponse {
            status: Some(status),
            ..Default::default()
        })
    }
}

#[async_trait]
impl ImageService for Images {
    async fn list_images(&self, _: v1::ListImagesRequest) -> CriResult<v1::ListImagesResponse> {
        let images = vec![Self::busybox()];
        Ok(v1::ListImagesResponse { images })
    }

    async fn image_status(
        &self,
        request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        let name = request.image.unwrap_or_default().image;
        let info = [("config".to_owned(), r#"{"User":"7"}"#.to_owned())];
        Ok(v1::ImageStatusResponse {
            image: name.contains("busybox").then(Self::busybox),
            info: if request.verbose {
                info.into()
            } else {
                [].into()
            },
        })
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        self.pulled.lock().unwrap().push(request.clone());
        let image_ref = request.image.unwrap_or_default().image;
        match image_ref.contains("secret") {
            true => Err(CriError::new(
                "PullImage",
                CriErrorKind::Other(rubelet_cri::Code::Unauthenticated),
                "the registry wants a password",
            )),
            false => Ok(v1::PullImageResponse { image_ref }),
        }
    }

    async fn remove_image(
        &self,
        request: v1::RemoveImageRequest,
    ) -> CriResult<v1::RemoveImageResponse> {
        let name = request.image.unwrap_or_default().image;
        self.removed.lock().unwrap().push(name);
        Ok(v1::RemoveImageResponse {})
    }
}

#[async_trait]
impl ImageLoader for Images {
    async fn load(&self, path: PathBuf) -> CriResult<Vec<String>> {
        let path = path.display().to_string();
        match path.contains("broken") {
            true => Err(CriError::new(
                "LoadImage",
                CriErrorKind::InvalidArgument,
                format!("{path} is no archive"),
            )),
            false => Ok(vec![path]),
        }
    }
}

/// A runtime with images on a socket, in a thread of its own.
struct Served {
    images: Arc<Images>,
    directory: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start(loads: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("cri.sock");
        let images = Arc::new(Images::default());
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let service = Arc::clone(&images);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = UnixListener::bind(&socket).unwrap();
                ready.send(()).unwrap();
                let loader = loads.then(|| Arc::clone(&service) as _);
                let services = (Arc::clone(&service) as _, service);
                let shutdown = async {
                    let _ = stopped.await;
                };
                serve_loading(listener, services.0, services.1, loader, shutdown).await;
            });
        });
        is_ready.recv().unwrap();
        Self {
            images,
            directory,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn type_in(&self, command: &str) -> Ended {
        let socket = self.directory.path().join("cri.sock");
        let socket = ["--runtime-socket", socket.to_str().unwrap()];
        let words = std::iter::once("image").chain(command.split_whitespace());
        let words = words.chain(socket).map(str::to_owned).collect();
        type_words(words, &Screens::default(), false)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || std::thread::panicking());
    }
}

#[test]
fn images_are_listed_shown_and_removed() {
    let served = Served::start(true);
    assert_eq!(
        served.type_in("ls").data(),
        "IMAGE                 TAG   IMAGE ID       SIZE\n\
         example.com/busybox   1     aaaaaaaaaaaa   4.30MB\n"
    );
    assert_eq!(served.type_in("ls -q").data(), format!("{ID}\n"));
    let shown: serde_json::Value =
        serde_json::from_str(&served.type_in("inspect busybox").data()).unwrap();
    assert_eq!(shown[0]["id"], ID);
    assert_eq!(shown[0]["config"]["User"], "7");
    assert_eq!(served.type_in("rm example.com/busybox:1").data(), GONE);
    assert_eq!(*served.images.removed.lock().unwrap(), [ID]);
}

#[test]
fn an_image_that_a_container_uses_is_removed_by_force_only() {
    let served = Served::start(true);
    let container = |id: &str, image: &str| v1::Container {
        id: id.to_owned(),
        image_id: image.to_owned(),
        labels: [
            ("io.kubernetes.pod.namespace", "shop"),
            ("io.kubernetes.pod.name", "web"),
            ("io.kubernetes.container.name", id),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        ..Default::default()
    };
    for (user, image) in [("runs", ID), ("mounts", "sha256:other")] {
        *served.images.containers.lock().unwrap() =
            vec![container("idle", "sha256:other"), container(user, image)];
        let error = served.type_in("rm busybox").error(1);
        assert_eq!(
            error,
            format!(
                "error: the image \"busybox\" is used by the container \"{user}\" of the pod \
                 shop/web; remove that first, or the image nevertheless with --force\n"
            )
        );
    }
    assert!(served.images.removed.lock().unwrap().is_empty());
    assert_eq!(served.type_in("rm -f busybox").data(), GONE);
}

#[test]
fn an_image_that_is_not_there_does_not_keep_the_others_from_being_removed() {
    let served = Served::start(true);
    let ended = served.type_in("rm nothing busybox");
    assert_eq!((ended.code, &*ended.out), (1, GONE));
    assert_eq!(
        ended.err,
        "error: image \"nothing\" not found; `rubelet image ls` lists images\n"
    );
}

#[test]
fn pulling_tells_the_registrys_reason() {
    let served = Served::start(true);
    assert_eq!(served.type_in("pull a:1").data(), "a:1\n");
    let error = served.type_in("pull secret:1").error(1);
    assert_eq!(
        error,
        "error: cannot pull secret:1: the registry wants a password\n"
    );
    let usage = served.type_in("pull a:1 --username me").error(2);
    assert!(usage.contains("--password-stdin"), "{usage}");
}

#[test]
fn credentials_are_given_as_a_pair_or_in_a_file_of_docker_or_podman() {
    let served = Served::start(true);
    let shown = |command: &str| {
        served.type_in(command).data();
        let auth = served.images.pulled.lock().unwrap().pop().unwrap().auth;
        auth.map(|auth| (auth.username, auth.password))
    };
    let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
    assert_eq!(shown("pull a:1"), None);
    assert_eq!(shown("pull a:1 --creds me:a:b"), pair("me", "a:b"));
    let file = served.directory.path().join("auth.json");
    let path = file.display();
    // user:pa:ss
    let logins = r#"{
        "auths": {
            "r.test": {"auth": "dXNlcjpwYTpzcw=="},
            "r.test/team": {"username": "team", "password": "p"},
            "token.test": {"username": "t", "identitytoken": "x"}
        },
        "credHelpers": {"kept.test": "keeper"}
    }"#;
    std::fs::write(&file, logins).unwrap();
    let of = |image: &str| shown(&format!("pull {image} --authfile {path}"));
    assert_eq!(of("r.test/a:1"), pair("user", "pa:ss"));
    assert_eq!(of("r.test/team/a:1"), pair("team", "p"));
    assert_eq!(of("other.test/a:1"), None);
    for (image, part) in [
        ("token.test/a:1", "tokens"),
        (
            "kept.test/a:1",
            "docker-credential-keeper, which is not run",
        ),
    ] {
        let ended = served.type_in(&format!("pull {image} --authfile {path}"));
        let error = ended.error(1);
        assert!(error.contains(part), "{error}");
    }
    std::fs::write(&file, "nothing").unwrap();
    let error = served
        .type_in(&format!("pull a:1 --authfile {path}"))
        .error(1);
    assert!(error.contains("cannot read the logins in"), "{error}");
    for usage in [
        "pull a:1 --creds me",
        "pull a:1 --creds :p",
        "pull a:1 --creds a:b --authfile x",
    ] {
        served.type_in(usage).error(2);
    }
}

#[test]
fn a_platform_is_passed_to_a_runtime_that_knows_what_it_means() {
    let served = Served::start(true);
    served.type_in("pull a:1 --platform linux/aarch64").data();
    let asked = served.images.pulled.lock().unwrap().pop().unwrap();
    let image = asked.image.unwrap();
    assert_eq!(image.annotations["rubelet.dev/platform"], "linux/arm64");
    let usage = served.type_in("pull a:1 --platform arm64").error(2);
    assert!(usage.contains("write OS/ARCHITECTURE"), "{usage}");
    let is_other = &served.images.is_other;
    is_other.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = served.type_in("pull a:1 --platform linux/arm64").error(1);
    assert!(
        error.contains("another cannot be told a platform"),
        "{error}"
    );
    assert!(served.images.pulled.lock().unwrap().is_empty());
}

#[test]
fn files_are_loaded_by_their_whole_path_where_the_runtime_can() {
    let served = Served::start(true);
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        served.type_in("load a.tar").data(),
        format!("{}\n", here.join("a.tar").display())
    );
    let both = served.type_in("load -i a.tar b.tar").data();
    assert!(
        both.contains("/a.tar\n") && both.contains("/b.tar\n"),
        "{both}"
    );
    let error = served.type_in("load dir/broken.tar").error(1);
    assert_eq!(error, "error: dir/broken.tar is no archive\n");
    let other = Served::start(false);
    let error = other.type_in("load a.tar").error(1);
    assert!(error.contains("cannot load archives"), "{error}");
}

#[test]
fn a_socket_that_is_named_and_not_there_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("none.sock");
    let words = ["image", "ls", "--runtime-socket", socket.to_str().unwrap()];
    let ended = type_words(
        words.map(str::to_owned).to_vec(),
        &Screens::default(),
        false,
    );
    let error = ended.error(1);
    assert!(
        error.starts_with("error: cannot connect to the container runtime on "),
        "{error}"
    );
}
