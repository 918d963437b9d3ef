//! The socket itself: mode, group, takeover, and what is refused on it.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::fixture::TestServer;
use crate::{BindError, UnixSocket, bind_unix};

#[tokio::test]
async fn the_socket_is_for_owner_and_group_in_a_directory_that_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run/rubelet/rubelet.sock");
    let _listener = bind_unix(&UnixSocket::new(&path)).await.unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o660
    );
}

#[tokio::test]
async fn a_group_is_found_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sock");
    let own = fs::metadata(directory.path()).unwrap().gid();
    let groups = fs::read_to_string("/etc/group").unwrap();
    let name = crate::group::name_of(&groups, own).expect("the test's group has a name");
    let socket = UnixSocket {
        group: Some(name.to_owned()),
        ..UnixSocket::new(&path)
    };
    let _listener = bind_unix(&socket).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().gid(), own);

    let socket = UnixSocket {
        group: Some("no-such-group".to_owned()),
        ..socket
    };
    let error = bind_unix(&socket)
        .await
        .expect_err("unknown group")
        .to_string();
    assert!(
        error.contains(r#"group "no-such-group""#) && error.contains("groupadd"),
        "{error}"
    );
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_a_living_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let socket = UnixSocket::new(directory.path().join("a.sock"));
    drop(bind_unix(&socket).await.unwrap());
    assert!(socket.path.exists());
    let _living = bind_unix(&socket)
        .await
        .expect("a stale socket is replaced");
    let error = bind_unix(&socket).await.expect_err("somebody listens");
    assert!(matches!(&error, BindError::InUse { path } if *path == socket.path));
    let text = error.to_string();
    assert!(text.starts_with(&format!(
        "another agent is listening on {}",
        socket.path.display()
    )));
}

#[tokio::test]
async fn a_file_in_the_way_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    fs::write(&path, "data").unwrap();
    let error = bind_unix(&UnixSocket::new(&path))
        .await
        .expect_err("not a socket");
    assert!(matches!(error, BindError::NotASocket { .. }));
    assert_eq!(fs::read_to_string(&path).unwrap(), "data");
}

#[tokio::test]
async fn oversized_heads_are_refused() {
    let server = TestServer::with_pods().await;
    let long = format!("X-Long: {}\r\n", "x".repeat(64 * 1024));
    assert_eq!(server.open("GET", "/version", &long).await.code, 431);
    let many = (0..100)
        .map(|n| format!("X-{n}: y\r\n"))
        .collect::<String>();
    assert_eq!(server.open("GET", "/version", &many).await.code, 431);
    assert_eq!(server.get("/version").await.code, 200);
}

#[tokio::test]
async fn stopping_closes_the_socket_for_new_clients() {
    let server = TestServer::with_pods().await;
    let path = server.path.clone();
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept.sock");
    fs::hard_link(&path, &kept).unwrap();
    server.stop().await;
    assert!(!path.exists());
    assert!(tokio::net::UnixStream::connect(&kept).await.is_err());
}

#[tokio::test]
async fn connections_have_a_limit_and_the_next_is_closed_at_once() {
    let server = TestServer::with_pods().await;
    let mut held = Vec::new();
    for _ in 0..128 {
        held.push(server.open("GET", "/api/v1/pods?watch=1", "").await);
    }
    let mut refused = tokio::net::UnixStream::connect(&server.path).await.unwrap();
    let mut nothing = Vec::new();
    let _ = refused.read_to_end(&mut nothing).await;
    assert!(nothing.is_empty());
    held.pop();
    // The place is free as soon as the server has seen the end of that connection.
    loop {
        let mut stream = tokio::net::UnixStream::connect(&server.path).await.unwrap();
        let request = b"GET /version HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
        let mut answer = Vec::new();
        let _ = stream.write_all(request).await;
        let _ = stream.read_to_end(&mut answer).await;
        if answer.starts_with(b"HTTP/1.1 200") {
            return;
        }
    }
}

#[tokio::test]
async fn a_client_that_asks_nothing_is_left_after_ten_seconds() {
    let server = TestServer::with_pods().await;
    for part in [&b""[..], b"GET /version HTTP/1.1\r\nHost: no"] {
        let mut stream = tokio::net::UnixStream::connect(&server.path).await.unwrap();
        stream.write_all(part).await.unwrap();
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        let seconds = began.elapsed().as_secs();
        assert!((9..=12).contains(&seconds), "{seconds}");
        tokio::time::resume();
    }
}
