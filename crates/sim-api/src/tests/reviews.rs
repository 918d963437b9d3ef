//! Tokens and reviews.

use serde_json::{Value, json};

use super::{PODS, TestClient, pair, pod, server};
use crate::{AccessRule, User};

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

#[tokio::test(start_paused = true)]
async fn a_service_account_token_is_valid_until_it_expires() {
    let (api, mut client) = pair().await;
    let pod = api.create("pods", &pod("web")).unwrap();
    let bound = |uid: &Value| {
        json!({ "spec": { "audiences": ["x"], "expirationSeconds": 600, "boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid,
        } } })
    };
    let (code, made) = client.post(TOKENS, &bound(&pod["metadata"]["uid"])).await;
    assert_eq!(code, 201);
    let token = made["status"]["token"].as_str().unwrap();
    let review = json!({ "spec": { "token": token, "audiences": ["x", "y"] } });
    let (_, answer) = client.post(TOKEN_REVIEWS, &review).await;
    assert_eq!(answer["status"]["authenticated"], true);
    assert_eq!(answer["status"]["audiences"], json!(["x"]));
    let user = &answer["status"]["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:default");
    let (_, answer) = client
        .post(TOKEN_REVIEWS, &json!({ "spec": { "token": token } }))
        .await;
    assert!(
        answer["status"].get("authenticated").is_none(),
        "it is for another audience"
    );
    let mut wrong = TestClient::new(&api).await.with_token(token);
    assert_eq!(wrong.get(PODS).await.0, 401, "it is not for this server");
    let (_, own) = client.post(TOKENS, &json!({ "spec": {} })).await;
    let own = own["status"]["token"].as_str().unwrap();
    let mut right = TestClient::new(&api).await.with_token(own);
    assert_eq!(right.get(PODS).await.0, 200);
    tokio::time::advance(std::time::Duration::from_secs(662)).await;
    let (_, answer) = client.post(TOKEN_REVIEWS, &review).await;
    assert!(
        answer["status"].get("authenticated").is_none(),
        "it has run out, and the leeway is over"
    );
    let (code, _) = client.post(TOKENS, &bound(&json!("other"))).await;
    assert_eq!(code, 409);
    let short = json!({ "spec": { "expirationSeconds": 5 } });
    assert_eq!(client.post(TOKENS, &short).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn access_rules_decide_requests_and_reviews() {
    let (api, mut client) = pair().await;
    api.add_token("t", User::new("ann", &["ops"]));
    api.add_access_rule(AccessRule::allow("ann", "get", "nodes/metrics"));
    let review = |user: &str, subresource: &str| {
        json!({ "spec": { "user": user, "groups": [], "resourceAttributes": {
            "verb": "get", "resource": "nodes", "subresource": subresource, "name": "n",
        } } })
    };
    for (user, subresource, allowed) in [
        ("ann", "metrics", true),
        ("ann", "proxy", false),
        ("bob", "metrics", false),
    ] {
        let (code, answer) = client
            .post(ACCESS_REVIEWS, &review(user, subresource))
            .await;
        assert_eq!(code, 201);
        assert_eq!(answer["status"]["allowed"], allowed, "{user} {subresource}");
    }
    let (_, answer) = client
        .post(TOKEN_REVIEWS, &json!({ "spec": { "token": "t" } }))
        .await;
    assert_eq!(
        answer["status"]["user"]["groups"],
        json!(["ops", "system:authenticated"])
    );
    assert_eq!(client.get(TOKEN_REVIEWS).await.0, 405);
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_clients_are_refused_if_configured() {
    let api = server().await;
    api.configure(|config| config.authenticate = true);
    let mut nobody = TestClient::new(&api).await;
    assert_eq!(nobody.get(PODS).await.0, 403);
    assert_eq!(nobody.get("/healthz").await.0, 200);
    let mut wrong = TestClient::new(&api).await.with_token("wrong");
    let (code, error) = wrong.get(PODS).await;
    assert_eq!(
        (code, error["reason"].as_str()),
        (401, Some("Unauthorized"))
    );
    api.add_token("right", User::node("n"));
    let mut right = TestClient::new(&api).await.with_token("right");
    assert_eq!(right.get(PODS).await.0, 200);
    api.add_access_rule(AccessRule::deny("system:node:n", "list", "secrets"));
    let (code, error) = right.get("/api/v1/secrets").await;
    assert_eq!(code, 403);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(r#"User "system:node:n" cannot list resource "secrets""#),
        "{message}"
    );
    assert_eq!(api.requests().last().unwrap().user, "system:node:n");
}
