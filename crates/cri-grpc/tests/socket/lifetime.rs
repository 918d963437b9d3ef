//! Runtimes that come and go.

use rubelet_cri::{RuntimeService, v1};

use crate::runtime::Served;

#[tokio::test]
async fn the_next_call_works_once_the_runtime_is_back() {
    let mut served = Served::new();
    for _ in 0..20 {
        served
            .client
            .version(v1::VersionRequest::default())
            .await
            .unwrap();
        served.kill().await;
        let away = served.client.version(v1::VersionRequest::default()).await;
        assert!(away.unwrap_err().is_unavailable());
        served.start();
    }
    served
        .client
        .version(v1::VersionRequest::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_call_cut_off_by_the_runtimes_death_is_unavailable() {
    let mut served = Served::new();
    let client = served.client.clone();
    let call = tokio::spawn(async move {
        client
            .container_status(v1::ContainerStatusRequest::default())
            .await
    });
    served.runtime.hung.notified().await;
    served.kill().await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    served.start();
    served
        .client
        .version(v1::VersionRequest::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn many_callers_at_once_find_a_runtime_that_came_back() {
    let mut served = Served::new();
    served
        .client
        .version(v1::VersionRequest::default())
        .await
        .unwrap();
    served.kill().await;
    let away = served.client.version(v1::VersionRequest::default()).await;
    assert!(away.unwrap_err().is_unavailable());
    served.start();
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let client = served.client.clone();
            tokio::spawn(async move { client.version(v1::VersionRequest::default()).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_stopping_server_lets_current_calls_finish() {
    let mut served = Served::new();
    let client = served.client.clone();
    let call = tokio::spawn(async move {
        client
            .container_status(v1::ContainerStatusRequest::default())
            .await
    });
    served.runtime.hung.notified().await;
    let server = served.shut_down();
    // The server answers nobody new while the call is under way.
    let refused = loop {
        match served.client.version(v1::VersionRequest::default()).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(refused.is_unavailable(), "{refused}");
    assert!(!server.is_finished());
    call.abort();
    server.await.unwrap();
}
