//! Secrets and tokens on disk.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_api::pod::Pod;
use rubelet_node_state::objects::ObjectSource;
use rubelet_store::Record;
use serde_json::json;

use super::cluster::{Cluster, Mood, pod};
use crate::objects::{
    SecretsAtRest,
    files::FileKey,
    object_key::ObjectKey,
    object_refs::TokenRequest,
    records::{HeldToken, ObjectRecord, TokensRecord},
};

/// What is in the secrets; base64 of it is what plain records hold.
const VALUE: &str = "s3cr3t-value-of-a-secret";
const ENCODED: &str = "czNjcjN0LXZhbHVlLW9mLWEtc2VjcmV0";

fn put(cluster: &Cluster, name: &str, value: &str) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let path = format!("/api/v1/namespaces/default/secrets/{name}");
    let data = STANDARD.encode(value);
    let secret = json!({"type": "Opaque", "data": {"k": data}});
    cluster.api.put(&path, secret);
}

/// A pod with a volume of each secret, and a token.
fn with_secrets(name: &str, secrets: &[&str]) -> Arc<Pod> {
    let mut volumes: Vec<_> = secrets
        .iter()
        .map(|secret| json!({"name": secret, "secret": {"secretName": secret}}))
        .collect();
    volumes.push(json!({"name": "t", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}},
    ]}}));
    pod(name, json!({ "volumes": volumes }), json!({}))
}

/// What the volumes of the pod would hold of a secret now, and its token.
async fn read_back(cluster: &Cluster, pod: &Arc<Pod>, secret: &str) -> Option<(String, String)> {
    let found = cluster.volumes(pod).await.ok()?;
    let bytes = found.secrets.get(secret)?.data.get("k")?;
    let token = found.tokens.get(&("t".into(), "token".into()))?;
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Some((text, token.0.to_string()))
}

/// All files below, with what is in them.
fn files(below: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(below) else {
        return found;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let content = fs::read(&path).unwrap();
            found.push((path, content));
        }
    }
    found
}

fn assert_nothing_in_plain_text(cluster: &Cluster) {
    for (path, content) in files(cluster.directory().parent().unwrap()) {
        let content = String::from_utf8_lossy(&content);
        for secret in [VALUE, ENCODED, "token-1", "token-2"] {
            assert!(!content.contains(secret), "{}: {content}", path.display());
        }
    }
}

fn named(cluster: &Cluster, part: &str) -> Vec<PathBuf> {
    let all = files(&cluster.directory())
        .into_iter()
        .map(|(path, _)| path);
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    all.filter(|path| name(path).contains(part)).collect()
}

fn path_of(cluster: &Cluster, secret: &str) -> PathBuf {
    cluster
        .directory()
        .join(FileKey::Object(key(secret)).name())
}

fn key(secret: &str) -> ObjectKey {
    ObjectKey {
        kind: rubelet_api::container::ObjectKind::Secret,
        namespace: "default".into(),
        name: secret.into(),
    }
}

/// A cluster whose API server has gone after a pod with the secrets `a` and `b` ran.
async fn after_a_run() -> (Cluster, Arc<Pod>) {
    let cluster = Cluster::new();
    put(&cluster, "a", VALUE);
    put(&cluster, "b", "other");
    let one = with_secrets("one", &["a", "b"]);
    cluster.objects.track(&one);
    assert!(read_back(&cluster, &one, "a").await.is_some());
    cluster.objects.flush().await;
    cluster.api.set_mood(Mood::Away);
    (cluster, one)
}

async fn restart(cluster: &mut Cluster, pod: &Arc<Pod>) {
    cluster.restart().await;
    cluster.objects.track(pod);
}

#[tokio::test(start_paused = true)]
async fn no_value_of_a_secret_or_token_is_on_disk_and_a_start_without_api_server_has_them() {
    let (mut cluster, one) = after_a_run().await;
    assert_eq!(named(&cluster, "secret-").len(), 2);
    assert_eq!(named(&cluster, "tokens-").len(), 1);
    assert_nothing_in_plain_text(&cluster);
    restart(&mut cluster, &one).await;
    let expected = (VALUE.to_owned(), "token-1".to_owned());
    assert_eq!(read_back(&cluster, &one, "a").await, Some(expected));
}

#[tokio::test(start_paused = true)]
async fn with_none_nothing_is_written_and_what_was_there_is_removed() {
    let (mut cluster, one) = after_a_run().await;
    cluster.secrets = SecretsAtRest::None;
    fs::write(cluster.directory().join(".secret-1.json.tmp"), "x").unwrap();
    fs::write(cluster.directory().join("tokens-1.json.corrupt-1"), "x").unwrap();
    restart(&mut cluster, &one).await;
    assert_eq!(read_back(&cluster, &one, "a").await, None);
    cluster.api.set_mood(Mood::Well);
    let found = read_back(&cluster, &one, "a").await;
    assert_eq!(found.unwrap().0, VALUE);
    cluster.objects.flush().await;
    for kind in ["secret-", "tokens-"] {
        assert_eq!(named(&cluster, kind), [""; 0].map(PathBuf::from));
    }
    assert_nothing_in_plain_text(&cluster);
}

#[tokio::test(start_paused = true)]
async fn a_record_in_the_place_of_another_is_not_used() {
    let (mut cluster, one) = after_a_run().await;
    let (a, b) = (path_of(&cluster, "a"), path_of(&cluster, "b"));
    fs::copy(&a, &b).unwrap();
    restart(&mut cluster, &one).await;
    assert_eq!(read_back(&cluster, &one, "b").await, None);
    assert_eq!(named(&cluster, ".corrupt-").len(), 1);
    // Nor is one of another node.
    let (mut cluster, one) = after_a_run().await;
    let SecretsAtRest::Encrypted { node_name, .. } = &mut cluster.secrets else {
        panic!("encrypted by default")
    };
    *node_name = "other".into();
    restart(&mut cluster, &one).await;
    assert_eq!(read_back(&cluster, &one, "a").await, None);
}

#[tokio::test(start_paused = true)]
async fn with_another_key_records_are_put_aside_and_fetched_again() {
    let (mut cluster, one) = after_a_run().await;
    let key = cluster.directory().parent().unwrap().join("secrets.key");
    fs::remove_file(&key).unwrap();
    restart(&mut cluster, &one).await;
    assert_eq!(read_back(&cluster, &one, "a").await, None);
    assert!(!named(&cluster, ".corrupt-").is_empty());
    cluster.api.set_mood(Mood::Well);
    assert_eq!(read_back(&cluster, &one, "a").await.unwrap().0, VALUE);
    cluster.objects.flush().await;
    cluster.objects.sweep(std::slice::from_ref(&one)).await;
    assert_eq!(named(&cluster, ".corrupt-").len(), 0);
    cluster.api.set_mood(Mood::Away);
    restart(&mut cluster, &one).await;
    assert_eq!(read_back(&cluster, &one, "a").await.unwrap().0, VALUE);
}

#[tokio::test(start_paused = true)]
async fn with_a_key_that_others_can_read_nothing_is_kept_and_pods_start_all_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let (mut cluster, one) = after_a_run().await;
    let key = cluster.directory().parent().unwrap().join("secrets.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    restart(&mut cluster, &one).await;
    assert_eq!(read_back(&cluster, &one, "a").await, None);
    cluster.api.set_mood(Mood::Well);
    assert_eq!(read_back(&cluster, &one, "a").await.unwrap().0, VALUE);
    cluster.objects.flush().await;
    assert!(!path_of(&cluster, "a").exists(), "it might be out of date");
    assert_nothing_in_plain_text(&cluster);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_service_manager_goes_first() {
    let (mut cluster, one) = after_a_run().await;
    let place = cluster.directory().parent().unwrap().to_owned();
    fs::rename(place.join("secrets.key"), place.join("given")).unwrap();
    let SecretsAtRest::Encrypted { credential, .. } = &mut cluster.secrets else {
        panic!("encrypted by default")
    };
    *credential = Some(place.join("given"));
    restart(&mut cluster, &one).await;
    assert_eq!(read_back(&cluster, &one, "a").await.unwrap().0, VALUE);
    assert!(!place.join("secrets.key").exists());
}

#[tokio::test(start_paused = true)]
async fn plain_records_of_an_earlier_version_are_encrypted_at_the_start() {
    let (mut cluster, one) = after_a_run().await;
    // As they were written before.
    let object = cluster.objects.shared.state().objects_by_key[&key("a")]
        .value()
        .unwrap();
    cluster.api.set_mood(Mood::Well);
    let plain = path_of(&cluster, "a");
    let tokens = named(&cluster, "tokens-").pop().unwrap();
    fs::remove_file(&plain).unwrap();
    fs::remove_file(&tokens).unwrap();
    Record::at(&plain)
        .save(&ObjectRecord::new(&key("a"), &object))
        .unwrap();
    let (request, token) = {
        let state = cluster.objects.shared.state();
        let (request, held) = state.pods[&one.uid].tokens.iter().next().unwrap();
        (request.clone(), held.token.clone())
    };
    let record: Vec<(TokenRequest, HeldToken)> = vec![(request, token)];
    Record::at(&tokens)
        .save(&TokensRecord {
            tokens: record,
            account: None,
        })
        .unwrap();
    let content = fs::read_to_string(&plain).unwrap();
    assert!(content.contains(ENCODED), "{content}");
    // What a crash or damage left of others goes.
    for name in [
        ".secret-9.json.tmp",
        "secret-9.json.corrupt-1",
        "tokens-8.json",
    ] {
        fs::write(cluster.directory().join(name), &content).unwrap();
    }
    cluster.api.set_mood(Mood::Away);
    restart(&mut cluster, &one).await;
    let expected = (VALUE.to_owned(), "token-1".to_owned());
    assert_eq!(read_back(&cluster, &one, "a").await, Some(expected));
    assert_nothing_in_plain_text(&cluster);
    assert_eq!(named(&cluster, "9.json").len(), 0);
    assert_eq!(named(&cluster, "tokens-").len(), 1);
}
