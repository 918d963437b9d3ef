//! Who calls the kubelet API (port 10250), judged by a model API server: also by one that is slow, away or busy.

use std::{sync::Arc, time::Duration};

use rubelet_cluster::auth::{AccessReviews, TokenReviews};
use rubelet_http_core::user::{Attributes, Authenticator as _, Authorizer as _};
use rubelet_kube::{Client, ClientConfig, ClientOptions, Connector, Credential, Secret};
use sim_api::{AccessRule, SimApi, SimApiConfig, User};
use tokio::time::{Instant, sleep};

struct World {
    api: Arc<SimApi>,
    tokens: TokenReviews,
    rights: AccessReviews,
}

impl World {
    async fn start() -> Self {
        let config = SimApiConfig {
            authenticate: true,
            ..SimApiConfig::default()
        };
        let api = Arc::new(SimApi::start(config).await.expect("a model"));
        api.add_token("node-token", User::node("n1"));
        api.add_token("anns", User::new("ann", &["ops"]));
        api.add_access_rule(AccessRule::allow("ann", "get", "nodes/metrics"));
        let server = Arc::clone(&api);
        let connector = Connector::new(move || {
            let server = Arc::clone(&server);
            async move { Ok(server.connect()) }
        });
        let mut config = ClientConfig::anonymous("http://model")
            .expect("a URL")
            .over(connector);
        config.credential = Credential::Token(Secret::new("node-token"));
        let client = Client::new(config, ClientOptions::default()).expect("a client");
        let (two, five) = (Duration::from_secs(120), Duration::from_secs(300));
        Self {
            api,
            tokens: TokenReviews::new(&client, two),
            rights: AccessReviews::new(&client, five, Duration::from_secs(30)),
        }
    }

    /// `None` if the review failed.
    async fn user(&self, token: &str) -> Option<Option<rubelet_http_core::user::User>> {
        self.tokens.token(token).await.ok()
    }

    async fn may(&self, user: &str, subresource: &'static str) -> Option<bool> {
        let user = rubelet_http_core::user::User {
            name: user.to_owned(),
            ..Default::default()
        };
        let attributes = Attributes {
            verb: "get",
            subresource,
            node: "n1".into(),
        };
        self.rights.authorize(&user, &attributes).await.ok()
    }

    fn reviews(&self) -> usize {
        self.api.count(|one| one.resource.ends_with("reviews"))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.api.violations(), []);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_and_rights_are_what_the_api_server_says() {
    let world = World::start().await;
    let ann = world.user("anns").await.flatten().expect("ann");
    assert_eq!(ann.name, "ann");
    assert!(ann.groups.iter().any(|group| group == "ops"), "{ann:?}");
    assert_eq!(world.user("guessed").await, Some(None));
    assert_eq!(world.may("ann", "metrics").await, Some(true));
    assert_eq!(world.may("ann", "proxy").await, Some(false));
    assert_eq!(world.may("bob", "metrics").await, Some(false));
    assert_eq!(world.reviews(), 5);
    for _ in 0..10 {
        world.user("anns").await;
        world.may("ann", "metrics").await;
    }
    assert_eq!(world.reviews(), 5, "cache are remembered");
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_away_is_gone_when_its_time_is_over() {
    let world = World::start().await;
    assert!(world.user("anns").await.flatten().is_some());
    assert_eq!(world.may("ann", "metrics").await, Some(true));
    world.api.remove_token("anns");
    world.api.set_access_rules(Vec::new());
    sleep(Duration::from_secs(121)).await;
    assert_eq!(world.user("anns").await, Some(None));
    assert_eq!(world.may("ann", "metrics").await, Some(true));
    sleep(Duration::from_secs(180)).await;
    assert_eq!(world.may("ann", "metrics").await, Some(false));
}

#[tokio::test(start_paused = true)]
async fn while_the_api_server_is_away_only_those_it_was_asked_about_are_let_in() {
    let world = World::start().await;
    assert!(world.user("anns").await.flatten().is_some());
    assert_eq!(world.may("ann", "metrics").await, Some(true));
    for away in [true, false] {
        match away {
            true => world.api.set_down(true),
            false => world.api.set_frozen(true),
        }
        assert!(world.user("anns").await.flatten().is_some());
        assert_eq!(world.may("ann", "metrics").await, Some(true));
        let began = Instant::now();
        assert_eq!(world.user("guessed").await, None);
        assert_eq!(world.may("ann", "pods").await, None);
        assert!(began.elapsed() <= Duration::from_secs(21), "two deadlines");
        world.api.set_down(false);
        world.api.set_frozen(false);
    }
    assert_eq!(world.user("guessed").await, Some(None));
    assert_eq!(world.may("ann", "pods").await, Some(false));
}
