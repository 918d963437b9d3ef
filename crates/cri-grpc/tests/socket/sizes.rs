//! Large answers.

use rubelet_cri::{CriErrorKind, RuntimeService, v1};

use crate::runtime::Served;

/// Containers whose messages add up to about `total` bytes.
fn containers(total: usize) -> Vec<v1::Container> {
    (0..total / 10_000)
        .map(|number| v1::Container {
            id: number.to_string(),
            annotations: [("filler".to_owned(), "x".repeat(10_000))].into(),
            ..Default::default()
        })
        .collect()
}

/// A list with a filter, even an empty one, comes in one message.
fn in_one_message() -> v1::ListContainersRequest {
    v1::ListContainersRequest {
        filter: Some(v1::ContainerFilter::default()),
    }
}

#[tokio::test]
async fn a_list_of_ten_megabytes_is_taken() {
    let served = Served::new();
    let sent = containers(10_000_000);
    served.runtime.containers.lock().clone_from(&sent);
    let request = in_one_message();
    assert!(
        served
            .client
            .list_containers(request)
            .await
            .unwrap()
            .containers
            == sent
    );
}

#[tokio::test]
async fn a_list_over_the_limit_is_refused_and_the_client_stays_usable() {
    let served = Served::new();
    *served.runtime.containers.lock() = containers(17 * 1024 * 1024);
    let error = served
        .client
        .list_containers(in_one_message())
        .await
        .unwrap_err();
    assert_eq!(error.kind, CriErrorKind::ResourceExhausted, "{error}");
    served
        .client
        .version(v1::VersionRequest::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_list_of_everything_comes_in_pieces_and_has_no_limit() {
    let served = Served::new();
    let sent = containers(40_000_000);
    served.runtime.containers.lock().clone_from(&sent);
    let all = served
        .client
        .list_containers(v1::ListContainersRequest::default());
    assert!(all.await.unwrap().containers == sent);

    served.runtime.containers.lock().clear();
    let none = served
        .client
        .list_containers(v1::ListContainersRequest::default());
    assert_eq!(none.await.unwrap().containers, []);
}
