//! Layers that are here already, and who may use them.

use http::Method;

use super::*;

const BASIC: &str = "Basic dTpwYXNz"; // u:pass

/// Serves the image of `content` in `team/app` to the user `u` alone, and what `other` says in
/// `other/app`.
async fn private(
    content: Content,
    other: impl Fn(&RecordedRequest, Reply) -> Reply + Send + Sync + 'static,
) -> TestServer {
    TestServer::start(move |asked| {
        if let Some(path) = asked.path.strip_prefix("/v2/other/app/") {
            let path = format!("/v2/team/app/{path}");
            let there = RecordedRequest {
                path,
                ..asked.clone()
            };
            return other(asked, content.answer(&there));
        }
        match asked.authorization() {
            Some(BASIC) => content.answer(asked),
            _ => Reply::new(401, "").with("www-authenticate", "Basic realm=\"r\""),
        }
    })
    .await
}

/// A store in which the user `u` has pulled the image.
async fn pulled_by_its_owner(dir: &std::path::Path, server: &TestServer) -> Arc<ImageStore> {
    let store = open(dir).await;
    let image = format!("{}/team/app:plain", server.address);
    let request = PullRequest {
        image: &image,
        auth: Some(Credentials::Basic {
            username: "u".into(),
            password: "pass".into(),
        }),
        auth_for_mirrors: true,
        platform: None,
    };
    store.pull(request).await.unwrap();
    store
}

/// The owner has pulled the image; who names it in another repository does not get it.
async fn refused_to_another(server: &TestServer) -> (tempfile::TempDir, Arc<ImageStore>) {
    let dir = directory();
    let store = pulled_by_its_owner(dir.path(), server).await;
    let thief = format!("{}/other/app:plain", server.address);
    let error = pull(&store, &thief).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::NotFound, "{}", text(&error));
    (dir, store)
}

fn is_layer(asked: &RecordedRequest, layers: &[String]) -> bool {
    layers.iter().any(|layer| asked.path.ends_with(layer))
}

fn gets(server: &TestServer, part: &str) -> usize {
    let asked = server.asked().into_iter();
    asked
        .filter(|asked| asked.method == Method::GET && asked.path.contains(part))
        .count()
}

#[tokio::test]
async fn naming_a_layer_that_is_here_does_not_give_it() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let layers = layer_digests(&served);
    // In another repository of the same registry, which does not have it.
    let own = layers.clone();
    let victim = private(served.clone(), move |asked, reply| {
        match is_layer(asked, &own) {
            true => Reply::new(404, r#"{"errors":[{"code":"BLOB_UNKNOWN"}]}"#),
            false => reply,
        }
    })
    .await;
    let (_dir, store) = refused_to_another(&victim).await;
    // In a registry that says of everything that it has it.
    let lies = TestServer::start(move |asked| {
        let reply = served.answer(asked);
        match (is_layer(asked, &layers), &asked.method) {
            (false, _) => reply,
            (true, &Method::HEAD) => {
                Reply::new(200, "").with("content-length", &reply.body.len().to_string())
            }
            (true, _) => Reply::new(404, ""),
        }
    })
    .await;
    let image = format!("{}/team/app:plain", lies.address);
    let error = pull(&store, &image).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::NotFound, "{}", text(&error));
    assert_eq!(store.list().len(), 1);
    assert_eq!(store.find(&image), None);
}

#[tokio::test]
async fn naming_a_configuration_that_is_here_does_not_give_it() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let manifest: Value = serde_json::from_slice(&served.blobs.0[&served.tags["plain"]]).unwrap();
    let config = manifest["config"]["digest"].as_str().unwrap().to_owned();
    let victim = private(served, move |asked, reply| {
        match asked.path.ends_with(&config) {
            true => Reply::new(404, ""),
            false => reply,
        }
    })
    .await;
    refused_to_another(&victim).await;
}

#[tokio::test]
async fn a_layer_that_the_same_registry_confirms_is_not_downloaded_again() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let layers = layer_digests(&served);
    let server = private(served, |_, reply| reply).await;
    let dir = directory();
    let store = pulled_by_its_owner(dir.path(), &server).await;
    let other = format!("{}/other/app:plain", server.address);
    let heads = |server: &TestServer| {
        let asked = server.asked().into_iter();
        asked.filter(|asked| asked.method == Method::HEAD).count()
    };
    for layer in &layers {
        assert_eq!(gets(&server, layer), 1);
    }
    pull(&store, &other).await.unwrap();
    assert_eq!(heads(&server), layers.len());
    for layer in &layers {
        assert_eq!(gets(&server, layer), 1, "{layer}");
    }
    // By now it is known that everybody may have them there, also after a restart.
    drop(store);
    let store = open(dir.path()).await;
    let index = format!("{}/other/app:1", server.address);
    pull(&store, &index).await.unwrap();
    assert_eq!(heads(&server), layers.len());
    for layer in &layers {
        assert_eq!(gets(&server, layer), 1, "{layer}");
    }
}

#[tokio::test]
async fn another_registry_has_to_show_all_of_a_layer() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let layers = layer_digests(&served);
    let first = private(served.clone(), |_, reply| reply).await;
    let dir = directory();
    let store = pulled_by_its_owner(dir.path(), &first).await;
    let again = served.clone();
    let second = TestServer::start(move |asked| again.answer(asked)).await;
    pull(&store, &format!("{}/team/app:plain", second.address))
        .await
        .unwrap();
    for layer in &layers {
        assert_eq!(gets(&second, layer), 1);
    }
    // Something else in the layer's place is found out, and the layer stays as it was.
    let forged = layers[0].clone();
    let third = TestServer::start(move |asked| {
        let reply = served.answer(asked);
        match asked.path.ends_with(&forged) {
            true => Reply::new(200, vec![7; reply.body.len()]),
            false => reply,
        }
    })
    .await;
    let image = format!("{}/team/app:plain", third.address);
    let error = pull(&store, &image).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Refused, "{}", text(&error));
    let id = store.list()[0].id.clone();
    let rootfs = store.prepare_rootfs("c", &id, None).await.unwrap();
    assert_eq!(fs::read(rootfs.lower[3].join("bin/app")).unwrap(), b"1");
}
