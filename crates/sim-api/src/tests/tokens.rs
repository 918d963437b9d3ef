//! Service account tokens: audiences, bound objects, lifetimes, and requests of nodes.

use std::time::Duration;

use serde_json::{Value, json};

use super::{PODS, TestClient, node_client, pair, pod, pod_on, ready_node};
use crate::{AccessRule, SimApi, User};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

fn bound(object: &Value, kind: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind, "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"],
    })
}

async fn token(client: &mut TestClient, spec: Value) -> String {
    let (code, made) = client.post(TOKENS, &json!({ "spec": spec })).await;
    assert_eq!(code, 201, "{made}");
    made["status"]["token"].as_str().unwrap().to_owned()
}

async fn review(client: &mut TestClient, token: &str, audiences: &[&str]) -> Value {
    let review = json!({ "spec": { "token": token, "audiences": audiences } });
    let (code, answer) = client.post(REVIEWS, &review).await;
    assert_eq!(code, 201, "{answer}");
    answer["status"].clone()
}

/// The status code of a request with this token.
async fn code_for(api: &SimApi, token: &str) -> u16 {
    let mut client = TestClient::new(api).await.with_token(token);
    client.get(PODS).await.0
}

#[tokio::test(start_paused = true)]
async fn a_token_is_valid_for_its_audiences_only() {
    let (api, mut client) = pair().await;
    api.configure(|config| config.audiences = vec!["api".to_owned(), "old-api".to_owned()]);
    let (_, made) = client.post(TOKENS, &json!({ "spec": {} })).await;
    assert_eq!(made["spec"]["audiences"], json!(["api", "old-api"]));
    let own = made["status"]["token"].as_str().unwrap();
    assert_eq!(code_for(&api, own).await, 200);
    let status = review(&mut client, own, &[]).await;
    assert_eq!(status["audiences"], json!(["api", "old-api"]));
    let status = review(&mut client, own, &["old-api", "x"]).await;
    assert_eq!(status["audiences"], json!(["old-api"]));
    let other = token(&mut client, json!({ "audiences": ["x"] })).await;
    assert_eq!(code_for(&api, &other).await, 401);
    let status = review(&mut client, &other, &[]).await;
    assert!(status.get("authenticated").is_none());
    assert_eq!(
        status["error"],
        "[invalid bearer token, token audiences [\"x\"] is invalid for the target audiences \
         [\"api\" \"old-api\"]]"
    );
    // A token without audiences is for the server.
    api.add_token("plain", User::new("ann", &[]));
    assert_eq!(
        review(&mut client, "plain", &["api"]).await["audiences"],
        json!(["api"])
    );
    let status = review(&mut client, "plain", &["x"]).await;
    assert_eq!(status["error"], "invalid bearer token");
    let (code, error) = client.post(REVIEWS, &json!({ "spec": {} })).await;
    assert_eq!(code, 400);
    assert_eq!(
        error["message"],
        "token is required for TokenReview in authentication"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_is_invalid_without_its_bound_object() {
    let (api, mut client) = pair().await;
    let node = api.create("nodes", &ready_node("n")).unwrap();
    let pod = api.create("pods", &pod_on("web", "n")).unwrap();
    let secret = json!({ "metadata": { "name": "s", "namespace": "default" } });
    let secret = api.create("secrets", &secret).unwrap();
    for (object, kind, plural, namespace) in [
        (pod, "Pod", "pods", "default"),
        (secret, "Secret", "secrets", "default"),
        (node, "Node", "nodes", ""),
    ] {
        let token = token(
            &mut client,
            json!({ "boundObjectRef": bound(&object, kind) }),
        )
        .await;
        assert_eq!(code_for(&api, &token).await, 200, "{kind}");
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = crate::Kind::of(plural).unwrap().path(Some(namespace));
        let path = format!("{path}/{name}?gracePeriodSeconds=0");
        assert_eq!(client.delete(&path, &json!({})).await.0, 200, "{kind}");
        assert_eq!(code_for(&api, &token).await, 401, "{kind}");
        let status = review(&mut client, &token, &[]).await;
        assert_eq!(
            status["error"],
            "[invalid bearer token, service account token has been invalidated]"
        );
    }
    // An object of the same name is another object.
    let first = api.create("pods", &super::pod("again")).unwrap();
    let token = token(
        &mut client,
        json!({ "boundObjectRef": bound(&first, "Pod") }),
    )
    .await;
    client
        .delete(&format!("{PODS}/again?gracePeriodSeconds=0"), &json!({}))
        .await;
    api.create("pods", &super::pod("again")).unwrap();
    let status = review(&mut client, &token, &[]).await;
    let error = status["error"].as_str().unwrap();
    assert!(
        error.contains("does not match service account pod ref claim"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_of_a_pod_has_pod_and_node_claims() {
    let (api, mut client) = pair().await;
    let node = api.create("nodes", &ready_node("n")).unwrap();
    let uid = |object: &Value| json!([object["metadata"]["uid"]]);
    let web = api.create("pods", &pod_on("web", "n")).unwrap();
    let token_of_web = token(&mut client, json!({ "boundObjectRef": bound(&web, "Pod") })).await;
    let extra = review(&mut client, &token_of_web, &[]).await["user"]["extra"].clone();
    let told = |key: &str| extra[format!("authentication.kubernetes.io/{key}")].clone();
    assert_eq!(told("pod-name"), json!(["web"]));
    assert_eq!(told("pod-uid"), uid(&web));
    assert_eq!(told("node-name"), json!(["n"]));
    assert_eq!(told("node-uid"), uid(&node));
    assert!(
        told("credential-id")[0]
            .as_str()
            .unwrap()
            .starts_with("JTI=")
    );
    // Of a missing node only the name is known.
    let lost = api.create("pods", &pod_on("lost", "gone")).unwrap();
    let token_of_lost = token(
        &mut client,
        json!({ "boundObjectRef": bound(&lost, "Pod") }),
    )
    .await;
    let extra = review(&mut client, &token_of_lost, &[]).await["user"]["extra"].clone();
    assert_eq!(
        extra["authentication.kubernetes.io/node-name"],
        json!(["gone"])
    );
    assert!(extra.get("authentication.kubernetes.io/node-uid").is_none());
}

#[tokio::test(start_paused = true)]
async fn lifetimes_are_limited_and_those_of_pods_extended() {
    let (api, mut client) = pair().await;
    let web = api.create("pods", &pod("web")).unwrap();
    let usual = json!({ "boundObjectRef": bound(&web, "Pod"), "expirationSeconds": 3607 });
    let extended = token(&mut client, usual).await;
    let short = token(&mut client, json!({ "expirationSeconds": 600 })).await;
    api.configure(|config| config.longest_token = Some(Duration::from_secs(1200)));
    let wanted = json!({ "spec": { "expirationSeconds": 7200 } });
    let (_, cut) = client.post(TOKENS, &wanted).await;
    assert_eq!(cut["spec"]["expirationSeconds"], 1200);
    tokio::time::advance(Duration::from_secs(650)).await;
    assert_eq!(
        code_for(&api, &short).await,
        200,
        "clocks may differ by a minute"
    );
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(code_for(&api, &short).await, 401);
    tokio::time::advance(Duration::from_secs(7200)).await;
    assert_eq!(
        code_for(&api, &extended).await,
        200,
        "it is good for a year"
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_token_requests_are_refused_as_by_upstream() {
    let (api, mut client) = pair().await;
    let web = api.create("pods", &pod("web")).unwrap();
    let mut other = pod("other");
    other["spec"]["serviceAccountName"] = "worker".into();
    let other = api.create("pods", &other);
    let invalid = "TokenRequest.authentication.k8s.io";
    let mut cases = vec![
        (
            json!({ "spec": { "expirationSeconds": 599 } }),
            422,
            format!(
                "{invalid} \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a \
                 duration less than 10 minutes"
            ),
        ),
        (
            json!({ "spec": { "expirationSeconds": 4_294_967_297_i64 } }),
            422,
            format!(
                "{invalid} \"\" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify \
                 a duration larger than 2^32 seconds"
            ),
        ),
        (
            json!({ "metadata": { "name": "x" }, "spec": {} }),
            422,
            format!(
                "{invalid} \"default\" is invalid: metadata.name: Invalid value: \"x\": must match the service \
                 account name if specified"
            ),
        ),
        (
            json!({ "spec": { "boundObjectRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "x" } } }),
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment".to_owned(),
        ),
        (
            json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Secret", "name": "x" } } }),
            404,
            "secrets \"x\" not found".to_owned(),
        ),
        (
            json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u" } } }),
            409,
            "Operation cannot be fulfilled on Pod \"web\": the UID in the bound object reference (u) does not \
             match the UID in record. The object might have been deleted and then recreated"
                .to_owned(),
        ),
    ];
    if let Ok(other) = other {
        cases.push((
            json!({ "spec": { "boundObjectRef": bound(&other, "Pod") } }),
            400,
            "cannot bind token for serviceaccount \"default\" to pod running with different serviceaccount \
             name."
                .to_owned(),
        ));
    }
    assert_eq!(web["metadata"]["name"], "web");
    for (wanted, code, message) in cases {
        let (found, error) = client.post(TOKENS, &wanted).await;
        assert_eq!(
            (found, error["message"].as_str()),
            (code, Some(message.as_str())),
            "{wanted}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_tokens_for_its_own_pods_and_their_audiences() {
    let (api, _) = pair().await;
    let driver = json!({
        "metadata": { "name": "csi.example.com" },
        "spec": { "tokenRequests": [{ "audience": "storage" }] },
    });
    api.create("csidrivers", &driver).unwrap();
    let mut web = pod_on("web", "n");
    web["spec"]["volumes"] = json!([
        { "name": "t", "projected": { "sources": [
            { "serviceAccountToken": { "path": "t" } },
            { "serviceAccountToken": { "path": "v", "audience": "vault" } },
        ] } },
        { "name": "c", "csi": { "driver": "csi.example.com" } },
    ]);
    let web = api.create("pods", &web).unwrap();
    let far = api.create("pods", &pod_on("far", "m")).unwrap();
    // As for credential providers: an audience that no pod names.
    let verb = "request-serviceaccounts-token-audience";
    api.add_access_rule(AccessRule::allow("system:node:n", verb, "registry"));
    let mut node = node_client(&api, "n").await;
    let mut anonymous_uid = bound(&web, "Pod");
    anonymous_uid["uid"] = "".into();
    for (spec, wanted) in [
        (json!({ "boundObjectRef": bound(&web, "Pod") }), None),
        (
            json!({ "boundObjectRef": bound(&web, "Pod"), "audiences": ["vault"] }),
            None,
        ),
        (
            json!({ "boundObjectRef": bound(&web, "Pod"), "audiences": ["storage"] }),
            None,
        ),
        (
            json!({ "boundObjectRef": bound(&web, "Pod"), "audiences": ["registry"] }),
            None,
        ),
        (
            json!({ "boundObjectRef": bound(&far, "Pod"), "audiences": ["registry"] }),
            Some("node requested token bound to a pod scheduled on a different node"),
        ),
        (
            json!({ "boundObjectRef": bound(&web, "Pod"), "audiences": ["x"] }),
            Some("audience \"x\" not found in pod spec volume, system:node:n is not authorized"),
        ),
        (
            json!({ "boundObjectRef": bound(&web, "Pod"), "audiences": ["vault", "storage"] }),
            Some("node may only request 0 or 1 audiences"),
        ),
        (json!({}), Some("node requested token not bound to a pod")),
        (
            json!({ "boundObjectRef": anonymous_uid }),
            Some("node requested token with a pod binding without a uid"),
        ),
        (
            json!({ "boundObjectRef": bound(&far, "Pod") }),
            Some("node requested token bound to a pod scheduled on a different node"),
        ),
    ] {
        let (code, answer) = node.post(TOKENS, &json!({ "spec": spec })).await;
        let message = answer["message"].as_str().unwrap_or_default();
        match wanted {
            None => assert_eq!(code, 201, "{spec}: {message}"),
            Some(wanted) => {
                assert_eq!(code, 403, "{spec}: {message}");
                assert!(message.contains(wanted), "{message}");
            }
        }
    }
}
