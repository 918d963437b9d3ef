//! Pulls from a registry that behaves, and from ones that do not.

use std::{fs, time::Duration};

use rubelet_base::ErrorChain;
use serde_json::Value;
use tokio::sync::Notify;

use super::*;
use crate::{
    ImageSettings, Platform,
    test_image::{directory, layer, names, open, settings},
    test_registry::{Content, RecordedRequest, Reply, ResponseFault, TestServer, proxy},
};

mod auth;
mod mirrors;
mod present_layers;

/// The tag `1` leads to an index, `plain` to the manifest for this machine.
fn content() -> Content {
    let mut content = Content::default();
    let host = Platform::host();
    let layers = [
        layer(&[("bin/app", "1")]),
        layer(&[("etc/x", &"large ".repeat(50_000))]),
        layer(&[("top", "3")]),
        layer(&[("more", "4")]),
    ];
    let other = content
        .blobs
        .image(&layers, &Platform::new("linux", "s390x", ""), "other");
    let image = content.blobs.image(&layers, &host, "pulled");
    let index = content.blobs.index(&[other.clone(), image.clone()]);
    let digest = |value: &Value| value["digest"].as_str().unwrap().to_owned();
    content.tags.insert("1".into(), digest(&index));
    content.tags.insert("plain".into(), digest(&image));
    content.tags.insert("foreign".into(), digest(&other));
    content
}

async fn pull(store: &Arc<ImageStore>, image: &str) -> Result<ImageId, PullError> {
    store
        .pull(PullRequest {
            image,
            auth: None,
            auth_for_mirrors: true,
            platform: None,
        })
        .await
}

fn text(error: &PullError) -> String {
    ErrorChain(error).to_string()
}

/// The digests of an image's layers as they are on the wire.
fn layer_digests(content: &Content) -> Vec<String> {
    let manifest: Value = serde_json::from_slice(&content.blobs.0[&content.tags["plain"]]).unwrap();
    let layers = manifest["layers"].as_array().unwrap();
    layers
        .iter()
        .map(|layer| layer["digest"].as_str().unwrap().to_owned())
        .collect()
}

/// A failed pull must leave nothing that could be taken for an image.
async fn nothing_is_left(store: &Arc<ImageStore>, root: &std::path::Path) {
    assert!(store.list().is_empty());
    // Threads of layers that were given up clean up by themselves, or end with a whole layer.
    let clean = async {
        while !names(&root.join("ingest")).is_empty() || names(&root.join("layers")) != ["empty"] {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let store = Arc::clone(store);
            blocking(move || store.sweep(true)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), clean)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_image_is_pulled_with_all_its_layers() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let index = served.tags["1"].clone();
    let server = TestServer::start(move |asked| served.answer(asked)).await;
    let dir = directory();
    let store = open(dir.path()).await;
    let name = format!("{}/team/app", server.address);
    let id = pull(&store, &format!("{name}:1")).await.unwrap();
    let image = store.find(&format!("{name}:1")).unwrap();
    assert_eq!(image.id, id);
    assert_eq!(image.config.env, ["MARKER=pulled"]);
    assert_eq!(image.repo_digests, [format!("{name}@{index}")]);
    let rootfs = store.prepare_rootfs("c", &id, None).await.unwrap();
    assert_eq!(fs::read(rootfs.lower[3].join("bin/app")).unwrap(), b"1");
    assert_eq!(fs::read(rootfs.lower[0].join("more")).unwrap(), b"4");
    // Again, by digest and by another tag: no layer is asked for twice.
    let blobs = server.count("/blobs/");
    assert_eq!(blobs, 5);
    assert_eq!(pull(&store, &format!("{name}@{index}")).await.unwrap(), id);
    assert_eq!(server.count("/blobs/"), blobs);
    assert_eq!(pull(&store, &format!("{name}:plain")).await.unwrap(), id);
    // What another manifest names as its configuration is asked for again.
    assert_eq!(server.count("/blobs/"), blobs + 1);
    assert_eq!(store.list().len(), 1);
    assert_eq!(
        store
            .find(&format!("{name}:plain"))
            .unwrap()
            .repo_digests
            .len(),
        2
    );
    assert_eq!(names(&dir.path().join("ingest")), [""; 0]);
}

#[tokio::test]
async fn an_image_for_another_machine_is_pulled_when_that_is_asked_for() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let server = TestServer::start(move |asked| served.answer(asked)).await;
    let dir = directory();
    let store = open(dir.path()).await;
    let name = format!("{}/team/app:1", server.address);
    let pull = async |platform: &str| {
        let request = PullRequest {
            image: &name,
            auth: None,
            auth_for_mirrors: true,
            platform: Some(platform.parse().unwrap()),
        };
        store.pull(request).await
    };
    let id = pull("linux/s390x").await.unwrap();
    let image = store.find(&name).unwrap();
    assert_eq!((&image.id, &*image.platform.architecture), (&id, "s390x"));
    let error = text(&pull("linux/mips64").await.unwrap_err());
    assert!(
        error
            .contains("no match for platform linux/mips64 in the image index; it has: linux/s390x"),
        "{error}"
    );
}

#[tokio::test]
async fn callers_of_the_same_pull_share_it() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let server = TestServer::start(move |asked| served.answer(asked)).await;
    let dir = directory();
    let store = open(dir.path()).await;
    let name = format!("{}/team/app:1", server.address);
    let many = futures_util::future::join_all((0..20).map(|_| pull(&store, &name))).await;
    let ids: std::collections::BTreeSet<_> = many.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(
        (server.count("/blobs/"), server.count("/manifests/")),
        (5, 2)
    );
    // Other names share the layers.
    store.remove(&name).await.unwrap();
    let plain = format!("{}/team/app:plain", server.address);
    let (one, other) = tokio::join!(pull(&store, &name), pull(&store, &plain));
    assert_eq!(one.unwrap(), other.unwrap());
    assert!(
        server.count("/blobs/") <= 5 + 4 + 2,
        "{}",
        server.count("/blobs/")
    );
}

#[tokio::test]
async fn a_shared_pull_continues_until_its_last_caller_gives_up() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let large = layer_digests(&served)[1].clone();
    let go_on = Arc::new(Notify::new());
    let notify = Arc::clone(&go_on);
    let server = TestServer::start(move |asked| {
        let reply = served.answer(asked);
        if asked.path.ends_with(&large) {
            return reply.fault(ResponseFault::StopAfter(10, Arc::clone(&notify)));
        }
        reply
    })
    .await;
    let dir = directory();
    let store = open(dir.path()).await;
    let name = format!("{}/team/app:1", server.address);
    let spawn = || {
        let (store, name) = (Arc::clone(&store), name.clone());
        tokio::spawn(async move { pull(&store, &name).await })
    };
    let (first, second) = (spawn(), spawn());
    while server.count("/blobs/") < 5 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    go_on.notify_one();
    second.await.unwrap().unwrap();
    store.remove(&name).await.unwrap();
    let before = server.count("/blobs/");
    let alone = spawn();
    while server.count("/blobs/") < before + 5 {
        tokio::task::yield_now().await;
    }
    alone.abort();
    assert!(alone.await.unwrap_err().is_cancelled());
    nothing_is_left(&store, dir.path()).await;
}

#[tokio::test]
async fn layers_of_a_pull_that_failed_are_there_for_the_next_one() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let digests = layer_digests(&served);
    let last = digests[3].clone();
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let switch = Arc::clone(&fails);
    let server = TestServer::start(move |asked| {
        if asked.path.ends_with(&last) && switch.load(std::sync::atomic::Ordering::Relaxed) {
            return Reply::new(500, "");
        }
        served.answer(asked)
    })
    .await;
    let dir = directory();
    let mut settings = settings();
    settings.limits.parallel_layers = 1;
    let store = ImageStore::open(dir.path(), settings).await.unwrap();
    let name = format!("{}/team/app:1", server.address);
    assert_eq!(
        pull(&store, &name).await.unwrap_err().kind(),
        PullErrorKind::Unavailable
    );
    fails.store(false, std::sync::atomic::Ordering::Relaxed);
    pull(&store, &name).await.unwrap();
    for digest in &digests[..3] {
        assert_eq!(server.count(digest), 1);
    }
}

/// Pulls from a registry whose answers are changed, and expects a failure.
async fn failing(
    image: &str,
    settings: ImageSettings,
    change: impl Fn(&RecordedRequest, Reply) -> Reply + Send + Sync + 'static,
) -> PullError {
    let served = content();
    let server = TestServer::start(move |asked| change(asked, served.answer(asked))).await;
    let dir = directory();
    let store = ImageStore::open(dir.path(), settings).await.unwrap();
    let error = pull(&store, &format!("{}/team/app{image}", server.address))
        .await
        .unwrap_err();
    nothing_is_left(&store, dir.path()).await;
    error
}

#[tokio::test]
async fn refusals_of_a_registry_have_different_error_kinds() {
    if !rubelet_needs::root() {
        return;
    }
    let error = failing(":none", settings(), |_, reply| reply).await;
    assert_eq!(error.kind(), PullErrorKind::NotFound);
    assert!(
        text(&error).contains("manifest unknown"),
        "{}",
        text(&error)
    );
    assert_eq!(
        failing(":foreign", settings(), |_, reply| reply)
            .await
            .kind(),
        PullErrorKind::NotFound
    );
    for (status, kind) in [
        (403, PullErrorKind::PermissionDenied),
        (401, PullErrorKind::Unauthenticated),
        (429, PullErrorKind::TooManyRequests),
        (500, PullErrorKind::Unavailable),
        (503, PullErrorKind::Unavailable),
        (418, PullErrorKind::Refused),
    ] {
        for place in ["/manifests/", "/blobs/"] {
            let error = failing(":1", settings(), move |asked, reply| {
                if asked.path.contains(place) {
                    return Reply::new(status, "busy").with("retry-after", "7");
                }
                reply
            });
            let error = error.await;
            assert_eq!(error.kind(), kind, "{status} {}", text(&error));
            assert!(text(&error).contains("try again in 7"), "{}", text(&error));
        }
    }
}

#[tokio::test]
async fn downloads_that_are_cut_off_fail() {
    if !rubelet_needs::root() {
        return;
    }
    for place in ["/manifests/", "/blobs/"] {
        let error = failing(":1", settings(), move |asked, reply| {
            if asked.path.contains(place) {
                let half = reply.body.len() / 2;
                return reply.fault(ResponseFault::CutAfter(half));
            }
            reply
        });
        let error = error.await;
        assert_eq!(error.kind(), PullErrorKind::Unavailable, "{}", text(&error));
    }
    // Without a length, the end of the connection looks like the end of the blob.
    let short = failing(":1", settings(), |asked, mut reply| {
        if asked.path.contains("/blobs/") {
            reply.body.truncate(reply.body.len() / 2);
            return reply.fault(ResponseFault::Chunked);
        }
        reply
    });
    let short = short.await;
    assert!(
        matches!(
            short.kind(),
            PullErrorKind::Unavailable | PullErrorKind::Refused
        ),
        "{}",
        text(&short)
    );
}

#[tokio::test]
async fn downloads_that_stand_still_fail() {
    if !rubelet_needs::root() {
        return;
    }
    let mut hasty = settings();
    hasty.limits.idle = Duration::from_millis(100);
    let never = Arc::new(Notify::new());
    let error = failing(":1", hasty, move |asked, reply| {
        if asked.path.contains("/blobs/") {
            return reply.fault(ResponseFault::StopAfter(1, Arc::clone(&never)));
        }
        reply
    });
    let error = error.await;
    assert_eq!(error.kind(), PullErrorKind::Unavailable);
    assert!(text(&error).contains("stalled"), "{}", text(&error));
}

#[tokio::test]
async fn what_is_not_what_its_digest_says_is_refused() {
    if !rubelet_needs::root() {
        return;
    }
    let digests = layer_digests(&content());
    for place in ["/manifests/sha256", "/blobs/"]
        .map(str::to_owned)
        .into_iter()
        .chain(digests)
    {
        for fault in [ResponseFault::None, ResponseFault::Chunked] {
            let place = place.clone();
            let error = failing(":1", settings(), move |asked, mut reply| {
                if asked.path.contains(&place) {
                    let middle = reply.body.len() / 2;
                    reply.body[middle] ^= 1;
                    return reply.fault(fault.clone());
                }
                reply
            });
            let error = error.await;
            assert_eq!(error.kind(), PullErrorKind::Refused, "{}", text(&error));
        }
    }
    // The registry itself says that it is something else.
    let error = failing(":1", settings(), |asked, mut reply| {
        if asked.path.ends_with("/manifests/1") {
            reply
                .headers
                .retain(|(name, _)| name != "docker-content-digest");
            let other = Digest::of(b"other").to_string();
            return reply.with("docker-content-digest", &other);
        }
        reply
    });
    assert_eq!(error.await.kind(), PullErrorKind::Refused);
}

#[tokio::test]
async fn sizes_are_bounded() {
    if !rubelet_needs::root() {
        return;
    }
    let mut small = settings();
    small.limits.manifest_bytes = 100;
    for chunked in [false, true] {
        let error = failing(":1", small.clone(), move |_, reply| {
            if chunked {
                reply.fault(ResponseFault::Chunked)
            } else {
                reply
            }
        });
        assert_eq!(error.await.kind(), PullErrorKind::Refused);
    }
    let error = failing(":1", settings(), |asked, mut reply| {
        if asked.path.contains("/blobs/") {
            reply.body.extend_from_slice(&[0; 100_000]);
            return reply.fault(ResponseFault::Chunked);
        }
        reply
    });
    assert_eq!(error.await.kind(), PullErrorKind::Refused);
    let mut few = settings();
    few.limits.layers = 3;
    assert_eq!(
        failing(":1", few, |_, reply| reply).await.kind(),
        PullErrorKind::Refused
    );
    let mut full = settings();
    full.limits.unpack.spare_bytes = u64::MAX;
    assert_eq!(
        failing(":1", full, |_, reply| reply).await.kind(),
        PullErrorKind::NoSpace
    );
}

#[tokio::test]
async fn names_that_lead_nowhere_fail() {
    let dir = directory();
    let store = open(dir.path()).await;
    let error = pull(&store, "Not A Name").await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::InvalidArgument);
    // Nobody listens on port 1.
    let error = pull(&store, "127.0.0.1:1/team/app").await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Unavailable, "{}", text(&error));
    assert!(
        text(&error).starts_with("cannot pull 127.0.0.1:1/team/app:latest"),
        "{}",
        text(&error)
    );
}
