//! Reviews by an API server that a test plays.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_http_core::user::{Attributes, Authenticator as _, Authorizer as _, User};
use rubelet_kube::ApiError;
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    time::{Instant, advance},
};

use super::{AccessReviews, TokenReviews, call::ReviewApi};

/// Answers from a list; the last answer stays.
struct Court {
    answers: Mutex<VecDeque<Result<Value, ApiError>>>,
    asked: Mutex<Vec<(String, Value)>>,
    /// Each answer takes one.
    gate: Semaphore,
}

impl Court {
    fn new(answers: impl IntoIterator<Item = Result<Value, ApiError>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
            gate: Semaphore::new(100_000),
        })
    }

    fn closed(answers: impl IntoIterator<Item = Result<Value, ApiError>>) -> Arc<Self> {
        let court = Self::new(answers);
        court.gate.forget_permits(100_000);
        court
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }
}

#[async_trait]
impl ReviewApi for Court {
    async fn review(&self, path: &str, body: &Value) -> Result<Value, ApiError> {
        self.asked.lock().push((path.to_owned(), body.clone()));
        self.gate.acquire().await.unwrap().forget();
        let mut answers = self.answers.lock();
        match (answers.len(), answers.front()) {
            (1, Some(Ok(answer))) => Ok(answer.clone()),
            _ => answers.pop_front().unwrap_or_else(|| Err(status(503))),
        }
    }
}

fn status(code: u16) -> ApiError {
    ApiError::Status {
        code,
        reason: "Because".to_owned(),
        message: "not now".to_owned(),
        retry_after: None,
    }
}

fn anns() -> Value {
    json!({ "status": { "authenticated": true, "user": {
        "username": "ann", "uid": "7", "groups": ["ops"], "extra": { "k": ["v"] },
    } } })
}

fn nobodys() -> Value {
    json!({ "status": { "user": {}, "error": "invalid bearer token" } })
}

fn tokens(court: &Arc<Court>) -> TokenReviews {
    TokenReviews::with(
        Arc::clone(court) as Arc<dyn ReviewApi>,
        Duration::from_secs(120),
    )
}

fn rights(court: &Arc<Court>) -> AccessReviews {
    let (allowed, denied) = (Duration::from_secs(300), Duration::from_secs(30));
    AccessReviews::with(Arc::clone(court) as Arc<dyn ReviewApi>, allowed, denied)
}

fn ann() -> User {
    User {
        name: "ann".to_owned(),
        uid: "7".to_owned(),
        groups: vec!["ops".to_owned()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
    }
}

fn reading(subresource: &'static str) -> Attributes {
    Attributes {
        verb: "get",
        subresource,
        node: "n1".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_a_token_is_remembered_for_two_minutes() {
    let court = Court::new([Ok(anns())]);
    let tokens = tokens(&court);
    for _ in 0..3 {
        assert_eq!(tokens.token("t").await, Ok(Some(ann())));
    }
    assert_eq!(court.asked(), 1);
    advance(Duration::from_secs(119)).await;
    assert_eq!(tokens.token("t").await, Ok(Some(ann())));
    assert_eq!(court.asked(), 1);
    advance(Duration::from_secs(2)).await;
    assert_eq!(tokens.token("t").await, Ok(Some(ann())));
    assert_eq!(court.asked(), 2);
    assert_eq!(
        court.asked.lock()[0],
        (
            "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(),
            json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "spec": { "token": "t" },
            })
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_of_nobody_is_asked_about_again_after_ten_seconds() {
    let court = Court::new([Ok(nobodys()), Ok(anns())]);
    let tokens = tokens(&court);
    assert_eq!(tokens.token("t").await, Ok(None));
    advance(Duration::from_secs(9)).await;
    assert_eq!(tokens.token("t").await, Ok(None));
    advance(Duration::from_secs(2)).await;
    assert_eq!(tokens.token("t").await, Ok(Some(ann())));
}

#[tokio::test(start_paused = true)]
async fn somebody_without_a_name_is_nobody() {
    let unnamed = json!({ "status": { "authenticated": true, "user": { "groups": ["ops"] } } });
    assert_eq!(
        tokens(&Court::new([Ok(unnamed)])).token("t").await,
        Ok(None)
    );
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_there_is_no_access_and_nothing_is_remembered() {
    let court = Court::new([
        Err(status(503)),
        Err(status(429)),
        Err(status(500)),
        Err(ApiError::TimedOut),
        Err(status(503)),
        Ok(anns()),
    ]);
    let tokens = tokens(&court);
    let began = Instant::now();
    let error = tokens.token("t").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "/apis/authentication.k8s.io/v1/tokenreviews: not now"
    );
    assert_eq!(court.asked(), 5);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(tokens.token("t").await, Ok(Some(ann())));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_review_itself_is_not_tried_again() {
    let court = Court::new([Err(status(403)), Ok(anns())]);
    assert!(tokens(&court).token("t").await.is_err());
    assert_eq!(court.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_hangs_is_given_ten_seconds() {
    let court = Court::closed([Ok(anns())]);
    let began = Instant::now();
    assert!(tokens(&court).token("t").await.is_err());
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_no_access() {
    for nonsense in [
        json!(null),
        json!([]),
        json!({}),
        json!({ "status": 1 }),
        json!({ "status": { "allowed": "yes" } }),
        json!({ "status": { "allowed": true, "denied": true } }),
    ] {
        let court = Court::new([Ok(nonsense.clone())]);
        let judged = rights(&court).authorize(&ann(), &reading("pods")).await;
        assert_ne!(judged, Ok(true), "{nonsense}");
        let owner = tokens(&court).token("t").await;
        assert!(!matches!(owner, Ok(Some(_))), "{nonsense}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_question_is_asked_once_however_many_wait() {
    let court = Court::closed([Ok(anns())]);
    let tokens = Arc::new(tokens(&court));
    let ask = || {
        let tokens = Arc::clone(&tokens);
        tokio::spawn(async move { tokens.token("t").await })
    };
    let first = ask();
    let others: Vec<_> = (0..20).map(|_| ask()).collect();
    while court.asked() == 0 {
        tokio::task::yield_now().await;
    }
    // The first caller may stop waiting.
    first.abort();
    assert!(first.await.is_err());
    court.gate.add_permits(1);
    for other in others {
        assert_eq!(other.await.unwrap(), Ok(Some(ann())));
    }
    assert_eq!(court.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_tokens_take_no_more_than_their_room_and_don_t_push_out_good_ones() {
    let court = Court::new([Ok(anns()), Ok(nobodys())]);
    let tokens = tokens(&court);
    assert!(tokens.token("good").await.unwrap().is_some());
    for bad in 0..3000 {
        assert_eq!(tokens.token(&format!("bad{bad}")).await, Ok(None));
    }
    assert!(tokens.cache.len() <= 1024);
    let asked = court.asked();
    assert!(tokens.token("good").await.unwrap().is_some());
    assert_eq!(court.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn too_many_questions_at_a_time_are_refused() {
    let court = Court::closed([Ok(anns())]);
    let tokens = Arc::new(tokens(&court));
    let waiting: Vec<_> = (0..256)
        .map(|number| {
            let tokens = Arc::clone(&tokens);
            tokio::spawn(async move { tokens.token(&format!("t{number}")).await })
        })
        .collect();
    while court.asked() < 256 {
        tokio::task::yield_now().await;
    }
    let refused = tokens.token("one more").await.unwrap_err();
    assert_eq!(refused.to_string(), "too many concurrent reviews");
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn rights_are_asked_for_as_the_kubelet_asks_and_remembered() {
    let court = Court::new([
        Ok(json!({ "status": { "allowed": true } })),
        Ok(json!({ "status": { "allowed": false, "reason": "no" } })),
    ]);
    let rights = rights(&court);
    for _ in 0..2 {
        assert_eq!(rights.authorize(&ann(), &reading("pods")).await, Ok(true));
        assert_eq!(rights.authorize(&ann(), &reading("proxy")).await, Ok(false));
    }
    assert_eq!(court.asked(), 2);
    assert_eq!(
        court.asked.lock()[0],
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned(),
            json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "verb": "get", "version": "v1", "resource": "nodes",
                        "subresource": "pods", "name": "n1",
                    },
                    "user": "ann", "uid": "7", "groups": ["ops"], "extra": { "k": ["v"] },
                },
            })
        )
    );
    advance(Duration::from_secs(31)).await;
    assert_eq!(rights.authorize(&ann(), &reading("proxy")).await, Ok(false));
    assert_eq!(rights.authorize(&ann(), &reading("pods")).await, Ok(true));
    assert_eq!(court.asked(), 3);
    advance(Duration::from_secs(270)).await;
    assert_eq!(rights.authorize(&ann(), &reading("pods")).await, Ok(false));
}

#[tokio::test(start_paused = true)]
async fn users_that_differ_in_anything_are_judged_apart() {
    let court = Court::new([Ok(json!({ "status": { "allowed": true } }))]);
    let rights = rights(&court);
    let others = [
        ann(),
        User {
            name: "bob".to_owned(),
            ..ann()
        },
        User {
            uid: String::new(),
            ..ann()
        },
        User {
            groups: Vec::new(),
            ..ann()
        },
        User {
            extra: [].into(),
            ..ann()
        },
    ];
    for user in &others {
        assert_eq!(rights.authorize(user, &reading("pods")).await, Ok(true));
    }
    assert_eq!(court.asked(), others.len());
}

#[test]
fn an_answer_that_cannot_be_read_is_no_judgement() {
    let review = json!({
        "metadata": { "name": "x" },
        "status": {
            "authenticated": true, "error": "",
            "user": { "username": "ann", "uid": "7", "groups": ["ops"], "extra": { "k": ["v"] } },
        },
    });
    let keep = ["/metadata"];
    for seed in 0..500 {
        let (nulls, absent) = sim_api::malformed::with_nulls(seed, &review, &keep);
        let read = |review| super::tokens::owner(review).unwrap();
        assert_eq!(read(&nulls), read(&absent), "{seed}");
        let (wrong, absent, pointer) = sim_api::malformed::with_wrong_type(seed, &review, &keep);
        match super::tokens::owner(&wrong) {
            Ok(owner) => {
                assert_eq!(pointer, "/status/error", "a field that nobody reads");
                assert_eq!(owner, read(&absent));
            }
            Err(rubelet_http_core::user::AuthError(text)) => {
                let field = pointer.trim_start_matches('/').replace('/', ".");
                assert!(text.contains(&field), "{text}: {field}");
            }
        }
    }
    for (status, allowed) in [
        (json!({ "allowed": true }), Some(true)),
        (
            json!({ "allowed": true, "denied": null, "reason": null }),
            Some(true),
        ),
        (json!({ "allowed": null }), Some(false)),
        (json!(null), Some(false)),
        (json!({ "allowed": "true" }), None),
        (json!({ "allowed": true, "denied": "yes" }), None),
        (json!("yes"), None),
    ] {
        let answer = super::access::allowed(&json!({ "status": status }));
        assert_eq!(answer.ok(), allowed, "{status}");
    }
}
