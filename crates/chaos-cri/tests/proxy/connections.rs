//! Connections: cut, frozen, lost by either side.

use std::time::Duration;

use chaos_cri::{Chaos, Rules, StartError};
use rubelet_cri::CriErrorKind;
use tokio::{io::AsyncWriteExt, net::UnixStream};

use crate::place::{Place, soon, version};

#[tokio::test]
async fn a_cut_fails_the_calls_under_way_and_the_next_one_works() {
    let place = Place::new(&["Version hang times=1"]).await;
    let hung = tokio::spawn({
        let client = place.client.clone();
        async move { version(&client).await }
    });
    let hit = async {
        while place.chaos.injected().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    soon(hit).await;
    place.chaos.cut();
    let error = soon(hung).await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    version(&place.client).await.unwrap();
}

#[tokio::test]
async fn a_rule_can_cut_all_connections() {
    let place = Place::new(&["Status cut times=1"]).await;
    version(&place.client).await.unwrap();
    let request = rubelet_cri::v1::StatusRequest::default;
    let error = soon(rubelet_cri::RuntimeService::status(
        &place.client,
        request(),
    ))
    .await;
    assert!(error.unwrap_err().is_unavailable());
    version(&place.client).await.unwrap();
}

#[tokio::test]
async fn a_frozen_connection_stays_open_and_goes_on_later() {
    let place = Place::with_timeout(
        &["Version freeze=700ms times=1"],
        Duration::from_millis(300),
    );
    let place = place.await;
    let error = soon(version(&place.client)).await.unwrap_err();
    assert!(
        matches!(error.kind, CriErrorKind::DeadlineExceeded(_)),
        "{error}"
    );
    assert_eq!(place.chaos.connections(), 1);
    let thawed = async { while version(&place.client).await.is_err() {} };
    soon(thawed).await;
    assert_eq!(place.chaos.connections(), 1, "the same one");
}

#[tokio::test]
async fn a_runtime_that_dies_and_comes_back_is_seen_through_the_proxy() {
    let mut place = Place::new(&[]).await;
    for _ in 0..5 {
        version(&place.client).await.unwrap();
        place.kill_runtime();
        let away = async { while version(&place.client).await.is_ok() {} };
        soon(away).await;
        let error = version(&place.client).await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        place.start_runtime();
        let back = async { while version(&place.client).await.is_err() {} };
        soon(back).await;
    }
}

#[tokio::test]
async fn clients_that_talk_nonsense_or_leave_do_no_harm() {
    let place = Place::new(&["* delay=1ms"]).await;
    let front = place.folder.path().join("front");
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 4096]] {
        let mut stream = UnixStream::connect(&front).await.unwrap();
        // It may be refused while it is written.
        let _ = stream.write_all(bytes).await;
        drop(stream);
    }
    version(&place.client).await.unwrap();
    let gone = async {
        while place.chaos.connections() > 1 {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
}

#[tokio::test]
async fn a_socket_is_taken_over_only_from_the_dead() {
    let place = Place::new(&[]).await;
    let front = place.folder.path().join("front");
    let start = |front: &std::path::Path| {
        let front = front.to_owned();
        async move { Chaos::start(&front, std::path::Path::new("/nowhere"), Rules::none()).await }
    };
    assert!(matches!(start(&front).await, Err(StartError::InUse(_))));
    let file = place.folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(matches!(start(&file).await, Err(StartError::NoSocket(_))));
    let stale = place.folder.path().join("stale");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let chaos = start(&stale).await.unwrap();
    drop(chaos);
    assert!(!stale.exists());
}
