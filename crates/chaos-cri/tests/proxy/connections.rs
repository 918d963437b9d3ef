//! Connections: cut, frozen, closed by either side.

use std::time::Duration;

use chaos_cri::{Chaos, Rules, StartError};
use rubelet_cri::CriErrorKind;
use tokio::{io::AsyncWriteExt, net::UnixStream};

use crate::fixture::{Fixture, soon, version};

#[tokio::test]
async fn a_cut_fails_calls_in_progress_and_the_next_one_works() {
    let fixture = Fixture::new(&["Version hang times=1"]).await;
    let hung = tokio::spawn({
        let client = fixture.client.clone();
        async move { version(&client).await }
    });
    let hit = async {
        while fixture.chaos.injected().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    soon(hit).await;
    fixture.chaos.cut();
    let error = soon(hung).await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    version(&fixture.client).await.unwrap();
}

#[tokio::test]
async fn a_rule_can_cut_all_connections() {
    let fixture = Fixture::new(&["Status cut times=1"]).await;
    version(&fixture.client).await.unwrap();
    let request = rubelet_cri::v1::StatusRequest::default;
    let error = soon(rubelet_cri::RuntimeService::status(
        &fixture.client,
        request(),
    ))
    .await;
    assert!(error.unwrap_err().is_unavailable());
    version(&fixture.client).await.unwrap();
}

#[tokio::test]
async fn a_frozen_connection_stays_open_and_continues_later() {
    let fixture = Fixture::with_timeout(
        &["Version freeze=700ms times=1"],
        Duration::from_millis(300),
    );
    let fixture = fixture.await;
    let error = soon(version(&fixture.client)).await.unwrap_err();
    assert!(
        matches!(error.kind, CriErrorKind::DeadlineExceeded(_)),
        "{error}"
    );
    assert_eq!(fixture.chaos.connections(), 1);
    let thawed = async { while version(&fixture.client).await.is_err() {} };
    soon(thawed).await;
    assert_eq!(fixture.chaos.connections(), 1, "the same one");
}

#[tokio::test]
async fn a_restart_of_the_runtime_is_visible_to_clients() {
    let mut fixture = Fixture::new(&[]).await;
    for _ in 0..5 {
        version(&fixture.client).await.unwrap();
        fixture.kill_runtime();
        let away = async { while version(&fixture.client).await.is_ok() {} };
        soon(away).await;
        let error = version(&fixture.client).await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        fixture.start_runtime();
        let back = async { while version(&fixture.client).await.is_err() {} };
        soon(back).await;
    }
}

#[tokio::test]
async fn clients_that_send_garbage_or_disconnect_do_no_harm() {
    let fixture = Fixture::new(&["* delay=1ms"]).await;
    let front = fixture.directory.path().join("front");
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 4096]] {
        let mut stream = UnixStream::connect(&front).await.unwrap();
        // The proxy may close the connection during the write.
        let _ = stream.write_all(bytes).await;
        drop(stream);
    }
    version(&fixture.client).await.unwrap();
    let gone = async {
        while fixture.chaos.connections() > 1 {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
}

#[tokio::test]
async fn a_socket_is_replaced_only_if_nobody_listens() {
    let fixture = Fixture::new(&[]).await;
    let front = fixture.directory.path().join("front");
    let start = |front: &std::path::Path| {
        let front = front.to_owned();
        async move { Chaos::start(&front, std::path::Path::new("/nowhere"), Rules::none()).await }
    };
    assert!(matches!(start(&front).await, Err(StartError::InUse(_))));
    let file = fixture.directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(matches!(start(&file).await, Err(StartError::NotASocket(_))));
    let stale = fixture.directory.path().join("stale");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let chaos = start(&stale).await.unwrap();
    drop(chaos);
    assert!(!stale.exists());
}
