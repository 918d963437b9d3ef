//! Plugins that are scripts of the shell.

mod accounts;

use std::sync::Arc;

use rubelet_api::parse::api_pod;
use rubelet_config::TokenAttributes;
use rubelet_node_state::objects::NoObjects;
use serde_json::json;
use tempfile::TempDir;

use super::*;

const VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";

/// A directory with a plugin `p`, which counts its calls in a file.
struct Rig {
    directory: TempDir,
    plugins: CredentialPlugins,
    metrics: Arc<NodeMetrics>,
}

impl Rig {
    fn new(body: &str, default: Duration) -> Self {
        Self::with(body, default, None)
    }

    fn with(body: &str, default: Duration, attributes: Option<TokenAttributes>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let script = format!(
            "#!/bin/sh\ncd {}\ncat > asked\necho x >> calls\n{body}\n",
            directory.path().display()
        );
        let path = directory.path().join("p");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let provider = CredentialProvider {
            name: "p".to_owned(),
            match_images: vec!["*.example.com".to_owned(), "r.io/team".to_owned()],
            default_cache_duration: default,
            api_version: VERSION.to_owned(),
            args: vec!["get".to_owned()],
            env: vec![("WHO".to_owned(), "robot".to_owned())],
            token_attributes: attributes,
        };
        let metrics = NodeMetrics::new();
        let plugins = CredentialPlugins::new(vec![provider], directory.path(), &metrics).unwrap();
        Self {
            directory,
            plugins,
            metrics,
        }
    }

    /// Answers with the user `$WHO-$1` for these places.
    fn answering(places: &[&str], scope: &str, duration: &str, default: Duration) -> Self {
        let auth: Vec<String> = places
            .iter()
            .map(|place| format!(r#""{place}": {{"username": "$WHO-$1", "password": "s"}}"#))
            .collect();
        let duration = match duration {
            "" => String::new(),
            duration => format!(r#""cacheDuration": "{duration}", "#),
        };
        let answer = format!(
            r#"{{"apiVersion": "{VERSION}", "kind": "CredentialProviderResponse", "cacheKeyType": "{scope}", {duration}"auth": {{{}}}}}"#,
            auth.join(", ")
        );
        Self::new(&format!("cat <<END\n{answer}\nEND"), default)
    }

    async fn users(&self, image: &str) -> Vec<String> {
        let pod = pod("web", "builder");
        let found = self.plugins.lookup(image, &pod, &NoObjects).await;
        assert!(found.iter().all(|login| login.source == LoginSource::Node));
        found.into_iter().map(|login| login.auth.username).collect()
    }

    /// What the plugin was asked last.
    fn asked(&self) -> serde_json::Value {
        let asked = fs::read_to_string(self.directory.path().join("asked")).unwrap();
        serde_json::from_str(&asked).unwrap()
    }

    fn calls(&self) -> usize {
        let calls = fs::read_to_string(self.directory.path().join("calls"));
        calls.unwrap_or_default().lines().count()
    }
}

/// A pod of this service account; its UID is its name.
fn pod(name: &str, account: &str) -> Arc<Pod> {
    let object = json!({
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {
            "nodeName": "n",
            "serviceAccountName": account,
            "containers": [{"name": "c", "image": "r.io/team/a"}],
        },
    });
    let parsed = api_pod(object, "n").unwrap_or_else(|errors| panic!("{errors:?}"));
    Arc::new(parsed.pod)
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_plugin_is_asked_for_images_that_fit_and_its_answer_is_kept() {
    let rig = Rig::answering(&["a.example.com"], "Registry", "1h", Duration::ZERO);
    assert_eq!(rig.users("b.io/app:1").await, [""; 0]);
    assert_eq!(rig.calls(), 0);
    for image in [
        "a.example.com/app:1",
        "a.example.com/other@sha256:0",
        "a.example.com/app",
    ] {
        assert_eq!(rig.users(image).await, ["robot-get"], "{image}");
    }
    assert_eq!(rig.calls(), 1);
    let expected = json!({
        "apiVersion": VERSION,
        "kind": "CredentialProviderRequest",
        "image": "a.example.com/app",
    });
    assert_eq!(rig.asked(), expected);
    // Another registry is asked for, and gets nothing that is not for it.
    assert_eq!(rig.users("b.example.com/app").await, [""; 0]);
    assert_eq!(rig.calls(), 2);
}

#[tokio::test]
async fn what_an_answer_is_good_for_and_how_long() {
    for (scope, duration, default, calls) in [
        ("Image", "1h", Duration::ZERO, 2),
        ("Registry", "1h", Duration::ZERO, 1),
        ("Global", "1h", Duration::ZERO, 1),
        ("Registry", "", HOUR, 1),
        ("Registry", "", Duration::ZERO, 3),
        ("Registry", "0s", HOUR, 3),
    ] {
        let rig = Rig::answering(&["r.io"], scope, duration, default);
        for image in ["r.io/team/a", "r.io/team/a", "r.io/team/b"] {
            assert_eq!(rig.users(image).await, ["robot-get"], "{scope}");
        }
        assert_eq!(rig.calls(), calls, "{scope} {duration:?} {default:?}");
    }
}

#[tokio::test]
async fn pods_that_ask_for_one_image_at_the_same_time_share_one_call() {
    let rig = Rig::answering(&["r.io"], "Image", "0s", Duration::ZERO);
    let asked = (0..10).map(|_| rig.users("r.io/team/a"));
    let users = futures_util::future::join_all(asked).await;
    assert!(users.iter().all(|users| *users == ["robot-get"]));
    assert_eq!(rig.calls(), 1);
}

#[tokio::test]
async fn a_plugin_that_fails_or_talks_nonsense_gives_nothing_and_is_asked_again() {
    for body in [
        "exit 3",
        "echo no",
        "echo '{}'",
        "echo '{\"kind\": \"CredentialProviderResponse\"}'",
    ] {
        let rig = Rig::new(body, HOUR);
        for _ in 0..2 {
            assert_eq!(rig.users("r.io/team/a").await, [""; 0], "{body}");
        }
        assert_eq!(rig.calls(), 2, "{body}");
    }
}

#[test]
fn errors_never_quote_an_answer() {
    let right = format!(
        r#"{{"apiVersion": "{VERSION}", "kind": "CredentialProviderResponse", "cacheKeyType": "Image", "auth": {{"r.io": {{"username": "u", "password": "geheim"}}}}}}"#
    );
    assert!(exec::parse(VERSION, right.as_bytes()).is_ok());
    for (from, to) in [
        ("\"u\"", "7"),
        ("Image", "Team"),
        ("/v1", "/v9"),
        ("CredentialProviderResponse", "Response"),
        ("\"auth\"", "\"cacheDuration\": \"soon\", \"auth\""),
    ] {
        let error = exec::parse(VERSION, right.replace(from, to).as_bytes()).unwrap_err();
        let error = format!("{error} {error:?}");
        assert!(!error.contains("geheim"), "{error}");
    }
}

#[test]
fn a_program_that_is_not_there_is_an_error_at_the_start() {
    let rig = Rig::new("exit 0", HOUR);
    let provider = CredentialProvider::clone(&rig.plugins.0[0].provider);
    let with = |name: &str| {
        let provider = CredentialProvider {
            name: name.to_owned(),
            ..provider.clone()
        };
        CredentialPlugins::new(vec![provider], rig.directory.path(), &rig.metrics).map(drop)
    };
    assert!(with("p").is_ok());
    assert!(matches!(with("q"), Err(PluginSetupError::Program { .. })));
    fs::write(rig.directory.path().join("text"), "").unwrap();
    assert!(matches!(
        with("text"),
        Err(PluginSetupError::NotExecutable(_))
    ));
}
