//! Pulls that ask mirrors before the registry, as `hosts.toml` says.

use std::path::Path;

use super::*;
use crate::test_registry::key_pem;

const IMAGE: &str = "registry.test/team/app:1";
const BASIC: &str = "Basic dTpwYXNz"; // u:pass

/// A store on a machine where this is said of `registry.test`.
struct Machine {
    store: Arc<ImageStore>,
    dir: tempfile::TempDir,
}

impl Machine {
    async fn new(hosts: &str) -> Self {
        Self::with(settings(), hosts).await
    }

    async fn with(mut settings: ImageSettings, hosts: &str) -> Self {
        let dir = directory();
        settings.hosts_dirs = vec![dir.path().join("none"), dir.path().join("certs.d")];
        settings.proxy = crate::Proxy::Direct;
        let directory = dir.path().join("certs.d/registry.test");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("hosts.toml"), hosts).unwrap();
        let root = dir.path().join("store");
        let store = ImageStore::open(&root, settings).await.unwrap();
        Self { store, dir }
    }

    fn directory(&self) -> std::path::PathBuf {
        self.dir.path().join("certs.d/registry.test")
    }

    async fn pull(&self) -> Result<ImageId, PullError> {
        self.pull_as(None, true).await
    }

    async fn pull_as(
        &self,
        auth: Option<Credentials>,
        auth_for_mirrors: bool,
    ) -> Result<ImageId, PullError> {
        let request = PullRequest {
            image: IMAGE,
            auth,
            auth_for_mirrors,
            platform: None,
        };
        self.store.pull(request).await
    }
}

async fn registry() -> TestServer {
    let served = content();
    TestServer::start(move |asked| served.answer(&without_query(asked))).await
}

/// Mirrors find in the query which registry is meant.
fn without_query(asked: &RecordedRequest) -> RecordedRequest {
    let path = asked.path.split('?').next().unwrap().to_owned();
    RecordedRequest {
        path,
        ..asked.clone()
    }
}

fn two(mirror: &str, server: &TestServer) -> String {
    format!("server = \"{}\"\n[host.\"{mirror}\"]\n", server.url(""))
}

#[tokio::test]
async fn a_mirror_is_asked_instead_of_the_registry() {
    if !rubelet_needs::root() {
        return;
    }
    let (mirror, server) = (registry().await, registry().await);
    let machine = Machine::new(&two(&mirror.url(""), &server)).await;
    let id = machine.pull().await.unwrap();
    assert_eq!(server.asked().len(), 0);
    assert_eq!(mirror.count("/v2/team/app/"), 2 + 5);
    assert_eq!(mirror.count("?ns=registry.test"), 2 + 5);
    let image = machine.store.find(IMAGE).unwrap();
    assert_eq!(
        (&image.id, &*image.repo_tags),
        (&id, &[IMAGE.to_owned()][..])
    );
    // What the file says now counts for the next pull.
    machine.store.remove(IMAGE).await.unwrap();
    let only = format!("server = \"{}\"", server.url("/us"));
    fs::write(machine.directory().join("hosts.toml"), only).unwrap();
    let error = machine.pull().await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::NotFound);
    assert_eq!(
        server.count("/us/v2/team/app/manifests/1?ns=registry.test"),
        1
    );
    assert_eq!(mirror.count("/v2/team/app/"), 2 + 5);
}

#[tokio::test]
async fn a_mirror_that_is_down_is_asked_once_and_costs_no_pull() {
    if !rubelet_needs::root() {
        return;
    }
    let busy = TestServer::start(|_| Reply::new(503, "")).await;
    let server = registry().await;
    // Nobody listens on port 1.
    for mirror in ["http://127.0.0.1:1", &busy.url("")] {
        Machine::new(&two(mirror, &server))
            .await
            .pull()
            .await
            .unwrap();
    }
    assert_eq!(busy.asked().len(), 1);
}

#[tokio::test]
async fn a_mirror_that_does_not_answer_costs_a_short_time() {
    if !rubelet_needs::root() {
        return;
    }
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mirror = format!("http://{}", deaf.local_addr().unwrap());
    let server = registry().await;
    let mut hasty = settings();
    hasty.limits.mirror_connect = Duration::from_millis(50);
    hasty.limits.mirror_answer = Duration::from_millis(50);
    let machine = Machine::with(hasty.clone(), &two(&mirror, &server)).await;
    machine.pull().await.unwrap();
    // The last one has more time, also one that is called a mirror.
    let last = Machine::with(hasty, &format!("server = \"{mirror}\"")).await;
    let waits = tokio::time::timeout(Duration::from_millis(500), last.pull());
    assert!(waits.await.is_err());
}

#[tokio::test]
async fn what_a_mirror_lacks_or_spoils_comes_from_the_registry() {
    if !rubelet_needs::root() {
        return;
    }
    type Change = fn(&RecordedRequest, Reply) -> Reply;
    let (none, cut, wrong, short): (Change, Change, Change, Change) = (
        |_, _| Reply::new(404, ""),
        |_, reply| {
            let half = reply.body.len() / 2;
            reply.fault(ResponseFault::CutAfter(half))
        },
        |_, mut reply| {
            let middle = reply.body.len() / 2;
            reply.body[middle] ^= 1;
            reply
        },
        |_, mut reply| {
            reply.body.pop();
            reply
        },
    );
    for change in [none, cut, wrong, short] {
        for place in ["/manifests/", "/blobs/"] {
            let served = content();
            let mirror = TestServer::start(move |asked| {
                let reply = served.answer(&without_query(asked));
                match asked.path.contains(place) {
                    true => change(asked, reply),
                    false => reply,
                }
            });
            let (mirror, server) = (mirror.await, registry().await);
            let machine = Machine::new(&two(&mirror.url(""), &server)).await;
            machine.pull().await.unwrap();
            let asked = (server.count("/manifests/"), server.count("/blobs/"));
            match place {
                "/manifests/" => assert_eq!(asked.0, 2),
                _ => assert_eq!(asked, (0, 5)),
            }
        }
    }
}

#[tokio::test]
async fn a_mirror_that_may_not_resolve_gives_blobs_only() {
    if !rubelet_needs::root() {
        return;
    }
    let (mirror, server) = (registry().await, registry().await);
    let hosts = two(&mirror.url(""), &server) + "capabilities = [\"pull\"]";
    Machine::new(&hosts).await.pull().await.unwrap();
    assert_eq!(server.count("/manifests/1"), 1);
    assert_eq!(server.asked().len(), 1);
    assert_eq!(mirror.count("/manifests/1"), 0);
    assert_eq!(mirror.count("/blobs/"), 5);
    // With nobody to ask, that is said.
    let only = format!("server = \"{}\"\ncapabilities = [\"pull\"]", server.url(""));
    let error = Machine::new(&only).await.pull().await.unwrap_err();
    assert!(text(&error).contains("capabilities"), "{}", text(&error));
}

#[tokio::test]
async fn a_pull_that_no_host_can_serve_names_all_hosts() {
    if !rubelet_needs::root() {
        return;
    }
    let forbids = TestServer::start(|_| Reply::new(403, "not for you")).await;
    let lacks = TestServer::start(|_| Reply::new(404, "")).await;
    let hosts = format!(
        "server = \"{}\"\n[host.\"http://127.0.0.1:1\"]\n[host.\"{}\"]",
        lacks.url(""),
        forbids.url("")
    );
    let error = Machine::new(&hosts).await.pull().await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::NotFound);
    let error = text(&error);
    assert!(
        error.starts_with("cannot pull registry.test/team/app:1: "),
        "{error}"
    );
    for part in [
        "cannot reach 127.0.0.1:1",
        &format!(
            "{}/v2/team/app/manifests/1: unexpected status 403",
            forbids.address
        ),
        "not for you",
        &format!(
            "{}/v2/team/app/manifests/1: unexpected status 404",
            lacks.address
        ),
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[tokio::test]
async fn a_mirrors_certificate_is_checked_by_its_own_authorities() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let mirror = TestServer::start_with(true, move |asked| served.answer(&without_query(asked)));
    let mirror = mirror.await;
    // Loopback is no exception for a host that is named with its scheme.
    let url = format!("server = \"https://localhost:{}\"\n", mirror.address.port());
    let error = Machine::new(&url).await.pull().await.unwrap_err();
    assert!(text(&error).contains("certificate"), "{}", text(&error));
    assert_eq!(mirror.asked().len(), 0);
    let machine = Machine::new(&format!("{url}ca = \"ca.crt\"")).await;
    let error = text(&machine.pull().await.unwrap_err());
    let at = machine.directory().join("hosts.toml").display().to_string();
    assert!(error.contains(&format!("{at}:2: ca: ")), "{error}");
    let file = machine.directory().join("ca.crt");
    fs::write(&file, "nothing").unwrap();
    let error = text(&machine.pull().await.unwrap_err());
    assert!(error.contains("no certificate found"), "{error}");
    fs::write(&file, mirror.certificate.as_ref().unwrap()).unwrap();
    machine.pull().await.unwrap();
    let lax = Machine::new(&format!("{url}skip_verify = true")).await;
    lax.pull().await.unwrap();
}

#[tokio::test]
async fn a_mirror_that_wants_a_certificate_is_shown_one() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let (mirror, client) =
        TestServer::start_mutual(move |asked| served.answer(&without_query(asked))).await;
    let url = format!(
        "server = \"https://localhost:{}\"\nskip_verify = true\n",
        mirror.address.port()
    );
    Machine::new(&url).await.pull().await.unwrap_err();
    assert_eq!(mirror.asked().len(), 0);
    for field in [
        "client = \"both.pem\"",
        "client = [[\"c.cert\", \"c.key\"]]",
    ] {
        let machine = Machine::new(&format!("{url}{field}")).await;
        let write =
            |name: &str, text: &str| fs::write(machine.directory().join(name), text).unwrap();
        write("c.cert", &client.0);
        write("c.key", &client.1);
        write("both.pem", &format!("{}{}", client.0, client.1));
        machine.pull().await.unwrap();
        // A key of another certificate is reported as such.
        let other = key_pem(&rcgen::KeyPair::generate().unwrap());
        write("c.key", &other);
        write("both.pem", &format!("{}{other}", client.0));
        let error = text(&machine.pull().await.unwrap_err());
        assert!(
            error.contains("hosts.toml:3: client: cannot use the client key"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn plain_http_is_spoken_where_the_file_says_so_whatever_it_says_of_tls() {
    if !rubelet_needs::root() {
        return;
    }
    let mirror = registry().await;
    for more in ["", "skip_verify = true"] {
        let hosts = format!("server = \"{}\"\n{more}", mirror.url(""));
        Machine::new(&hosts).await.pull().await.unwrap();
    }
    let served = content();
    let tls = TestServer::start_with(true, move |asked| served.answer(&without_query(asked)));
    let tls = tls.await;
    let hosts = format!("server = \"{}\"\nskip_verify = true", tls.url(""));
    Machine::new(&hosts).await.pull().await.unwrap();
}

#[tokio::test]
async fn mirrors_get_credentials_unless_those_are_for_one_server() {
    if !rubelet_needs::root() {
        return;
    }
    let served = content();
    let mirror = TestServer::start(move |asked| match asked.authorization() {
        Some(BASIC) => served.answer(&without_query(asked)),
        _ => Reply::new(401, "").with("www-authenticate", "Basic realm=\"r\""),
    });
    let mirror = mirror.await;
    let machine = Machine::new(&format!("server = \"{}\"", mirror.url(""))).await;
    let user = || {
        Some(Credentials::Basic {
            username: "u".into(),
            password: "pass".into(),
        })
    };
    let error = machine.pull_as(user(), false).await.unwrap_err();
    assert_eq!(error.kind(), PullErrorKind::Unauthenticated);
    assert!(
        mirror
            .asked()
            .iter()
            .all(|asked| asked.authorization().is_none())
    );
    machine.pull_as(user(), true).await.unwrap();
    // The file may say it as well.
    let hosts = format!(
        "server = \"{}\"\n[header]\nauthorization = \"{BASIC}\"",
        mirror.url("")
    );
    Machine::new(&hosts).await.pull().await.unwrap();
}

#[tokio::test]
async fn headers_are_for_the_host_itself() {
    if !rubelet_needs::root() {
        return;
    }
    let storage = registry().await;
    let (elsewhere, served) = (storage.url(""), content());
    let mirror = TestServer::start(move |asked| {
        if asked.headers.get_all("x-team").iter().count() != 2 {
            return Reply::new(403, "");
        }
        match asked.path.contains("/blobs/") {
            true => Reply::new(307, "").with("location", &format!("{elsewhere}{}", asked.path)),
            false => served.answer(&without_query(asked)),
        }
    });
    let mirror = mirror.await;
    let hosts = format!(
        "server = \"{}\"\n[header]\nx-team = [\"a\", \"b\"]",
        mirror.url("")
    );
    Machine::new(&hosts).await.pull().await.unwrap();
    assert_eq!(storage.count("/blobs/"), 5);
    assert!(
        storage
            .asked()
            .iter()
            .all(|asked| !asked.headers.contains_key("x-team"))
    );
}

#[tokio::test]
async fn a_file_with_a_mistake_fails_the_pulls_of_its_registry_by_line_and_field() {
    if !rubelet_needs::root() {
        return;
    }
    let server = registry().await;
    let hosts = format!("server = \"{}\"\nmirrors = []", server.url(""));
    let machine = Machine::new(&hosts).await;
    let error = machine.pull().await.unwrap_err();
    let file = machine.directory().join("hosts.toml");
    assert!(
        text(&error).starts_with(&format!(
            "cannot pull {IMAGE}: cannot read the registry hosts of registry.test: {}:2: \
             mirrors: unknown field",
            file.display()
        )),
        "{}",
        text(&error)
    );
    assert_eq!(server.asked().len(), 0);
    // Others are pulled nevertheless.
    let other = format!("{}/team/app:1", server.address);
    pull(&machine.store, &other).await.unwrap();
    assert!(Path::new(&file).exists());
}
