//! Plugins that are given tokens of service accounts.

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::objects::Token;
use rubelet_config::TokenCacheType;
use rubelet_node_state::objects::{ServiceAccount, ServiceAccountError};
use rubelet_pod_plan::image_access::PullServiceAccount;

use super::*;

/// Service accounts by name; there are no others.
#[derive(Default)]
struct Accounts {
    accounts: BTreeMap<String, ServiceAccount>,
    /// A token is new in each generation.
    generation: usize,
    /// No tokens are given.
    forbids: bool,
    /// For what tokens were asked.
    asked: Mutex<Vec<String>>,
}

impl Accounts {
    fn new() -> Self {
        let mut accounts = Self::default();
        accounts.set("builder", "u1", &[("role", "pull"), ("other", "x")]);
        accounts.set("plain", "u2", &[]);
        accounts
    }

    fn set(&mut self, name: &str, uid: &str, annotations: &[(&str, &str)]) {
        let annotations = annotations.iter();
        let account = ServiceAccount {
            uid: uid.into(),
            annotations: annotations
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        };
        self.accounts.insert(name.to_owned(), account);
    }
}

#[async_trait]
impl ServiceAccounts for Accounts {
    async fn service_account(&self, pod: &Pod) -> Result<ServiceAccount, ServiceAccountError> {
        let found = self.accounts.get(&*pod.spec.service_account);
        found.cloned().ok_or_else(|| "not found".to_owned().into())
    }

    async fn service_account_token(
        &self,
        pod: &Pod,
        uid: &str,
        audience: &str,
    ) -> Result<Token, ServiceAccountError> {
        if self.forbids {
            return Err("not authorized".to_owned().into());
        }
        let token = format!("{audience}/{uid}/{}/{}", pod.uid, self.generation);
        self.asked.lock().push(token.clone());
        Ok(Token(token.into()))
    }
}

fn attributes(cache_type: TokenCacheType) -> TokenAttributes {
    TokenAttributes {
        audience: "registry".to_owned(),
        cache_type,
        require_service_account: true,
        required_annotations: Vec::new(),
        optional_annotations: vec!["role".to_owned(), "region".to_owned()],
    }
}

/// A plugin that gives the user `robot` this password for `r.io`, for an hour.
fn rig(password: &str, attributes: TokenAttributes) -> Rig {
    let body = format!(
        "cat <<END\n{{\"apiVersion\": \"{VERSION}\", \"kind\": \"CredentialProviderResponse\", \
         \"cacheKeyType\": \"Registry\", \"auth\": {{\"r.io\": {{\"username\": \"robot\", \
         \"password\": \"{password}\"}}}}}}\nEND"
    );
    Rig::with(&body, HOUR, Some(attributes))
}

const IMAGE: &str = "r.io/team/a:1";

impl Rig {
    /// Whose the logins of a pod are.
    async fn sources(&self, pod: &Pod, accounts: &Accounts) -> Vec<LoginSource> {
        let found = self.plugins.lookup(IMAGE, pod, accounts).await;
        assert!(found.iter().all(|login| login.auth.username == "robot"));
        found.into_iter().map(|login| login.source).collect()
    }
}

fn of(name: &str, uid: &str) -> Vec<LoginSource> {
    vec![LoginSource::ServiceAccount(PullServiceAccount {
        uid: uid.to_owned(),
        namespace: "team".to_owned(),
        name: name.to_owned(),
    })]
}

#[tokio::test]
async fn a_plugin_is_given_the_token_and_the_annotations_that_it_asks_for() {
    let accounts = Accounts::new();
    let rig = rig("secret", attributes(TokenCacheType::Token));
    let found = rig.sources(&pod("web", "builder"), &accounts).await;
    assert_eq!(found, of("builder", "u1"));
    let mut expected = json!({
        "apiVersion": VERSION,
        "kind": "CredentialProviderRequest",
        "image": "r.io/team/a",
        "serviceAccountToken": "registry/u1/web/0",
        "serviceAccountAnnotations": {"role": "pull"},
    });
    assert_eq!(rig.asked(), expected);
    // Without annotations the field is left out.
    let found = rig.sources(&pod("web", "plain"), &accounts).await;
    assert_eq!(found, of("plain", "u2"));
    expected["serviceAccountToken"] = "registry/u2/web/0".into();
    let fields = expected.as_object_mut().unwrap();
    fields.remove("serviceAccountAnnotations");
    assert_eq!(rig.asked(), expected);
}

#[tokio::test]
async fn a_plugin_is_not_run_for_pods_that_it_has_nothing_for() {
    let accounts = Accounts::new();
    let mut wanted = attributes(TokenCacheType::ServiceAccount);
    wanted.required_annotations = vec!["role".to_owned()];
    wanted.optional_annotations.clear();
    let rig = rig("secret", wanted);
    // No account, none of that name, one without the annotation.
    for account in ["", "gone", "plain"] {
        let found = rig.sources(&pod("web", account), &accounts).await;
        assert_eq!(found, [], "{account:?}");
    }
    let forbidding = Accounts {
        forbids: true,
        ..Accounts::new()
    };
    let web = pod("web", "builder");
    assert_eq!(rig.sources(&web, &forbidding).await, []);
    assert_eq!(rig.calls(), 0);
    assert_eq!(accounts.asked.lock().len(), 0);
    assert_eq!(rig.plugins.only_for_accounts(), ["p"]);
    assert_eq!(rig.sources(&web, &accounts).await, of("builder", "u1"));
    assert_eq!(rig.calls(), 1);
}

#[tokio::test]
async fn a_plugin_that_needs_no_account_gives_credentials_of_the_node_to_pods_without_one() {
    let accounts = Accounts::new();
    let mut wanted = attributes(TokenCacheType::ServiceAccount);
    wanted.require_service_account = false;
    let rig = rig("secret", wanted);
    assert_eq!(rig.plugins.only_for_accounts(), [""; 0]);
    let without = pod("static", "");
    for _ in 0..2 {
        assert_eq!(rig.sources(&without, &accounts).await, [LoginSource::Node]);
    }
    assert_eq!(rig.calls(), 1);
    let asked = rig.asked();
    assert_eq!(asked.as_object().unwrap().len(), 3, "{asked}");
    // What is the node's is for no pod that has an account, and the other way round.
    let web = pod("web", "builder");
    assert_eq!(rig.sources(&web, &accounts).await, of("builder", "u1"));
    assert_eq!(rig.calls(), 2);
    assert_eq!(rig.sources(&without, &accounts).await, [LoginSource::Node]);
    assert_eq!(rig.calls(), 2);
}

#[tokio::test]
async fn an_answer_counts_for_the_account_or_for_the_token() {
    for (cache_type, shared) in [
        (TokenCacheType::ServiceAccount, true),
        (TokenCacheType::Token, false),
    ] {
        let mut accounts = Accounts::new();
        let rig = rig("secret", attributes(cache_type));
        let mut calls = 0;
        let mut step = |new: bool| {
            calls += usize::from(new);
            calls
        };
        let (web, worker) = (pod("web", "builder"), pod("worker", "builder"));
        rig.sources(&web, &accounts).await;
        assert_eq!(rig.calls(), step(true));
        rig.sources(&web, &accounts).await;
        assert_eq!(rig.calls(), step(false));
        // Another pod of the account, and a newer token.
        rig.sources(&worker, &accounts).await;
        assert_eq!(rig.calls(), step(!shared), "{cache_type:?}");
        accounts.generation = 1;
        rig.sources(&web, &accounts).await;
        assert_eq!(rig.calls(), step(!shared), "{cache_type:?}");
        // Another account, an edit of what the plugin sees, and an account that was made again.
        rig.sources(&pod("web", "plain"), &accounts).await;
        assert_eq!(rig.calls(), step(true), "{cache_type:?}");
        accounts.set("builder", "u1", &[("role", "push")]);
        rig.sources(&web, &accounts).await;
        assert_eq!(rig.calls(), step(true), "{cache_type:?}");
        accounts.set("builder", "u1", &[("role", "push"), ("other", "y")]);
        rig.sources(&web, &accounts).await;
        assert_eq!(rig.calls(), step(false), "{cache_type:?}");
        accounts.set("builder", "u3", &[("role", "push")]);
        assert_eq!(rig.sources(&web, &accounts).await, of("builder", "u3"));
        assert_eq!(rig.calls(), step(true), "{cache_type:?}");
    }
}

#[tokio::test]
async fn only_questions_with_one_token_share_a_call() {
    let accounts = Accounts::new();
    let rig = rig("secret", attributes(TokenCacheType::ServiceAccount));
    let (web, worker) = (pod("web", "builder"), pod("worker", "builder"));
    let pods = [&web, &worker, &web, &worker, &web];
    let asked = pods.map(|pod| rig.sources(pod, &accounts));
    let found = futures_util::future::join_all(asked).await;
    assert!(found.iter().all(|sources| *sources == of("builder", "u1")));
    assert_eq!(rig.calls(), 2);
}

#[tokio::test]
async fn a_token_as_a_password_is_for_its_pod_only() {
    let accounts = Accounts::new();
    let web = pod("web", "builder");
    for (cache_type, password, expected) in [
        (
            TokenCacheType::Token,
            "registry/u1/web/0",
            of("builder", "u1"),
        ),
        (
            TokenCacheType::ServiceAccount,
            "registry/u1/web/0",
            Vec::new(),
        ),
        (
            TokenCacheType::ServiceAccount,
            "registry/u1/web/1",
            of("builder", "u1"),
        ),
    ] {
        let rig = rig(password, attributes(cache_type));
        let found = rig.sources(&web, &accounts).await;
        assert_eq!(found, expected, "{cache_type:?} {password}");
    }
}

#[tokio::test]
async fn what_a_plugin_complains_of_does_not_bring_the_token_into_the_log() {
    let accounts = Accounts::new();
    let rig = Rig::with(
        "echo \"bad request: $(cat asked)\" >&2; exit 3",
        HOUR,
        Some(attributes(TokenCacheType::Token)),
    );
    let web = pod("web", "builder");
    let plugin = &rig.plugins.0[0];
    let asked = plugin.logins("r.io/team/a", &web, &accounts).await;
    let error = asked.err().unwrap().to_string();
    assert!(error.contains("bad request: "), "{error}");
    assert!(error.contains("(token)"), "{error}");
    assert!(!error.contains("registry/u1"), "{error}");
}
