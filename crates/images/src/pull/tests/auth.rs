//! Who asks, and who gets to know it.

use super::*;

const BASIC: &str = "Basic dTpwYXNz"; // u:pass

fn user() -> Option<Credentials> {
    Some(Credentials::Basic {
        username: "u".into(),
        password: "pass".into(),
    })
}

async fn pull_as(
    server: &TestServer,
    store: &Arc<ImageStore>,
    auth: Option<Credentials>,
) -> Result<ImageId, PullError> {
    let image = format!("{}/team/app:1", server.address);
    store
        .pull(PullRequest {
            image: &image,
            auth,
            auth_for_mirrors: true,
            platform: None,
        })
        .await
}

#[tokio::test]
async fn basic_credentials_are_shown_when_asked_for() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let server = TestServer::start(move |asked| match asked.authorization() {
        Some(BASIC) => served.answer(asked),
        _ => Reply::new(401, "").with("www-authenticate", "Basic realm=\"r\""),
    })
    .await;
    let dir = directory();
    let store = open(dir.path()).await;
    for auth in [
        None,
        Some(Credentials::Basic {
            username: "u".into(),
            password: "wrong".into(),
        }),
        Some(Credentials::Registry("token".into())),
    ] {
        let error = pull_as(&server, &store, auth).await.unwrap_err();
        assert_eq!(error.kind(), PullErrorKind::Unauthenticated);
        assert!(!text(&error).contains("wrong"));
    }
    pull_as(&server, &store, user()).await.unwrap();
}

/// A registry that wants the token `good`, and the server that gives it to the user `u`, to who has
/// an identity token, and, where it is `public`, to everybody.
async fn with_tokens(public: bool) -> (TestServer, Arc<TestServer>) {
    let tokens = TestServer::start(move |asked| {
        let is_post = asked.method == http::Method::POST;
        let is_known = asked.authorization() == Some(BASIC)
            || is_post
                && asked.body.contains("grant_type=refresh_token")
                && asked.body.contains("refresh_token=id%2Btoken");
        let query = if is_post { &asked.body } else { &asked.path };
        let is_asked_well = query.contains("scope=repository%3Ateam%2Fapp%3Apull")
            && query.contains("service=r.test");
        if !is_asked_well || !(is_known || public && asked.authorization().is_none()) {
            return Reply::new(401, r#"{"details":"incorrect username or password"}"#);
        }
        let field = if is_post { "access_token" } else { "token" };
        Reply::new(200, format!(r#"{{"{field}":"good","expires_in":60}}"#))
    })
    .await;
    let tokens = Arc::new(tokens);
    let realm = tokens.url("/token");
    let served = content();
    let server = TestServer::start(move |asked| match asked.authorization() {
        Some("Bearer good") => served.answer(asked),
        _ => Reply::new(401, "").with(
            "www-authenticate",
            &format!(r#"Bearer realm="{realm}",service="r.test",scope="repository:team/app:pull""#),
        ),
    })
    .await;
    (server, tokens)
}

#[tokio::test]
async fn a_token_is_fetched_once_for_a_pull() {
    if !rubelet_needs::root() {
        return;
    }
    for (public, auth) in [
        (true, None),
        (false, user()),
        (false, Some(Credentials::Identity("id+token".into()))),
    ] {
        let (server, tokens) = with_tokens(public).await;
        let dir = directory();
        let store = open(dir.path()).await;
        pull_as(&server, &store, auth).await.unwrap();
        assert_eq!(tokens.asked().len(), 1);
        // The password itself goes to the token server only.
        let mut shown = server.asked();
        shown.retain(|asked| {
            asked
                .authorization()
                .is_some_and(|header| header != "Bearer good")
        });
        assert!(shown.is_empty(), "{shown:?}");
    }
}

#[tokio::test]
async fn a_token_of_the_registry_is_shown_as_it_is() {
    if !rubelet_needs::root() {
        return;
    }
    let (server, tokens) = with_tokens(false).await;
    let dir = directory();
    let store = open(dir.path()).await;
    pull_as(&server, &store, Some(Credentials::Registry("good".into())))
        .await
        .unwrap();
    let error = pull_as(&server, &store, Some(Credentials::Registry("bad".into()))).await;
    assert_eq!(error.unwrap_err().kind(), PullErrorKind::Unauthenticated);
    assert!(tokens.asked().is_empty());
}

#[tokio::test]
async fn a_pull_without_a_token_says_why() {
    if !rubelet_needs::root() {
        return;
    }
    let (server, _tokens) = with_tokens(false).await;
    let dir = directory();
    let store = open(dir.path()).await;
    let error = pull_as(&server, &store, None).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Unauthenticated);
    assert!(
        text(&error).contains("incorrect username or password"),
        "{}",
        text(&error)
    );
}

#[tokio::test]
async fn credentials_never_go_to_another_host() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let behind = served.clone();
    let storage = TestServer::start(move |asked| behind.answer(asked)).await;
    let elsewhere = storage.url("");
    let server = TestServer::start(move |asked| {
        if asked.authorization() != Some(BASIC) {
            return Reply::new(401, "").with("www-authenticate", "Basic realm=\"r\"");
        }
        if asked.path.contains("/blobs/") && !asked.path.contains('?') {
            // First to itself, then away.
            return Reply::new(307, "").with("location", &format!("{}?again", asked.path));
        }
        if asked.path.contains("/blobs/") {
            let path = asked.path.trim_end_matches("?again");
            return Reply::new(302, "").with("location", &format!("{elsewhere}{path}"));
        }
        served.answer(asked)
    })
    .await;
    let dir = directory();
    let store = open(dir.path()).await;
    pull_as(&server, &store, user()).await.unwrap();
    assert_eq!(storage.count("/blobs/"), 5);
    assert!(
        storage
            .asked()
            .iter()
            .all(|asked| asked.authorization().is_none())
    );
    assert_eq!(server.count("?again"), 5);
}

#[tokio::test]
async fn a_storage_that_wants_credentials_gets_none() {
    if !rubelet_needs::root() {
        return;
    }
    let thief =
        TestServer::start(|_| Reply::new(401, "").with("www-authenticate", "Basic realm=\"r\""))
            .await;
    let to = thief.url("/steal");
    let server = TestServer::start(move |asked| match asked.authorization() {
        Some(BASIC) => Reply::new(307, "").with("location", &to),
        _ => Reply::new(401, "").with("www-authenticate", "Basic realm=\"r\""),
    })
    .await;
    let dir = directory();
    let store = open(dir.path()).await;
    let error = pull_as(&server, &store, user()).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Unauthenticated);
    assert!(
        thief
            .asked()
            .iter()
            .all(|asked| asked.authorization().is_none())
    );
}

#[tokio::test]
async fn an_address_in_the_query_of_a_relative_redirect_is_not_where_it_leads() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let server =
        TestServer::start(
            move |asked| match asked.path.split_once("?from=https://origin.test/") {
                Some((path, _)) => {
                    let path = path.to_owned();
                    let asked = RecordedRequest {
                        path,
                        ..asked.clone()
                    };
                    served.answer(&asked)
                }
                None => {
                    let to = format!("{}?from=https://origin.test/x", asked.path);
                    Reply::new(307, "").with("location", &to)
                }
            },
        )
        .await;
    let dir = directory();
    let store = open(dir.path()).await;
    pull_as(&server, &store, None).await.unwrap();
}

#[tokio::test]
async fn redirects_in_circles_end() {
    let server = TestServer::start(|asked| Reply::new(307, "").with("location", &asked.path)).await;
    let dir = directory();
    let store = open(dir.path()).await;
    let error = pull_as(&server, &store, None).await.unwrap_err();
    assert!(
        text(&error).contains("too many redirects"),
        "{}",
        text(&error)
    );
}

#[tokio::test]
async fn a_registry_on_loopback_may_show_any_certificate() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let server = TestServer::start_with(true, move |asked| served.answer(asked)).await;
    let dir = directory();
    let store = open(dir.path()).await;
    pull_as(&server, &store, None).await.unwrap();
    // A redirect from there to plain HTTP on another machine is refused.
    let server = TestServer::start_with(true, |_| {
        Reply::new(307, "").with("location", "http://storage.test/x")
    })
    .await;
    let error = pull_as(&server, &store, None).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Refused);
    assert!(text(&error).contains("plain HTTP"), "{}", text(&error));
}

#[tokio::test]
async fn a_token_server_must_be_as_safe_as_the_registry() {
    let server = TestServer::start_with(true, |_| {
        Reply::new(401, "").with(
            "www-authenticate",
            "Bearer realm=\"http://auth.test/token\"",
        )
    })
    .await;
    let dir = directory();
    let store = open(dir.path()).await;
    let error = pull_as(&server, &store, user()).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Refused);
    assert!(text(&error).contains("plain HTTP"), "{}", text(&error));
}

#[tokio::test]
async fn other_registries_are_checked_and_may_be_behind_a_proxy() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let server = TestServer::start_with(true, move |asked| served.answer(asked)).await;
    let (address, asked) = proxy(server.address).await;
    let dir = directory();
    let mut settings = settings();
    settings.proxy = crate::Proxy::Https(format!("http://{address}"));
    let request = || PullRequest {
        image: "registry.test/team/app:1",
        auth: None,
        auth_for_mirrors: true,
        platform: None,
    };
    let strict = ImageStore::open(&dir.path().join("strict"), settings.clone())
        .await
        .unwrap();
    let error = strict.pull(request()).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Unavailable);
    assert!(text(&error).contains("certificate"), "{}", text(&error));
    assert_eq!(server.asked().len(), 0);
    let file = dir.path().join("ca.pem");
    fs::write(&file, server.certificate.as_ref().unwrap()).unwrap();
    settings.authorities = Some(file);
    let store = ImageStore::open(&dir.path().join("store"), settings.clone())
        .await
        .unwrap();
    store.pull(request()).await.unwrap();
    assert!(
        asked
            .lock()
            .iter()
            .all(|line| line == "CONNECT registry.test:443 HTTP/1.1")
    );
    settings.proxy = crate::Proxy::Https("socks5://127.0.0.1:1".into());
    let socks = ImageStore::open(&dir.path().join("socks"), settings)
        .await
        .unwrap();
    let error = socks.pull(request()).await.unwrap_err();
    assert!(
        text(&error).contains("is not supported"),
        "{}",
        text(&error)
    );
}
