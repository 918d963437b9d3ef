//! URLs with tokens.

use http::{StatusCode, header::CONNECTION};

use super::fixture::{Fixture, send, upgraded};
use crate::{SessionKind, client::upgrade_headers};

#[tokio::test]
async fn a_url_is_good_once_and_for_its_own_kind_only() {
    let fixture = Fixture::new();
    let headers = || upgrade_headers(SessionKind::Exec);
    let mut ended_sessions = fixture.server.ended_sessions();
    let url = fixture.exec_url("exit 0", false).await;
    drop(upgraded(&url, headers()).await);
    ended_sessions.changed().await.unwrap();
    let again = send(&url, headers()).await;
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
    assert_eq!(again.headers().get(CONNECTION).unwrap(), "close");

    let url = fixture.exec_url("exit 0", false).await;
    let (base, token) = url.rsplit_once("/exec/").unwrap();
    for path in ["attach", "portforward", "", "exec/exec"] {
        let other = send(&format!("{base}/{path}/{token}"), headers()).await;
        assert_eq!(other.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let guessed = send(&format!("{base}/exec/AAAAAAAAAAAAAAAAAAAAAA"), headers()).await;
    assert_eq!(guessed.status(), StatusCode::NOT_FOUND);
    assert!(base.starts_with("http://127.0.0.1:"), "{base}");
}
