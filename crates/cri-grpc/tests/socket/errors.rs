//! What a caller learns from a call that failed.

use std::time::Duration;

use rubelet_cri::{Call, Code, CriError, CriErrorKind, ImageService, RuntimeService, Timeouts, v1};

use crate::runtime::Served;

#[tokio::test]
async fn every_kind_of_error_arrives_as_the_runtime_meant_it() {
    let served = Served::new();
    let allowed = Timeouts {
        request: Duration::from_secs(60),
    };
    let allowed = v1::StatusRequest::default().deadline(&allowed);
    for kind in [
        CriErrorKind::NotFound,
        CriErrorKind::AlreadyExists,
        CriErrorKind::Unimplemented,
        CriErrorKind::Unavailable,
        CriErrorKind::DeadlineExceeded(allowed.unwrap()),
        CriErrorKind::Canceled,
        CriErrorKind::InvalidArgument,
        CriErrorKind::ResourceExhausted,
        CriErrorKind::Other(Code::Unknown),
        CriErrorKind::Other(Code::PermissionDenied),
    ] {
        let error = CriError::new("Status", kind, "grüße: 100% \"broken\"\nline 2");
        *served.runtime.error.lock() = Some(error.clone());
        let answer = served.client.status(v1::StatusRequest::default()).await;
        assert_eq!(answer, Err(error));
    }
}

#[tokio::test]
async fn an_rpc_the_runtime_does_not_have_is_unimplemented() {
    let served = Served::new();
    let error = served
        .client
        .stop_container(v1::StopContainerRequest::default())
        .await;
    assert!(error.expect_err("nobody wrote it").is_unimplemented());
}

#[tokio::test]
async fn both_services_answer_on_the_one_socket() {
    let served = Served::new();
    let version = v1::VersionRequest {
        version: "0.1.0".into(),
    };
    assert_eq!(
        served.client.version(version).await.unwrap().version,
        "0.1.0"
    );

    let spec = v1::ImageSpec {
        image: "busybox".into(),
        ..Default::default()
    };
    let request = v1::ImageStatusRequest {
        image: Some(spec),
        ..Default::default()
    };
    let image = served.client.image_status(request).await.unwrap().image;
    assert_eq!(image.map(|image| image.id).as_deref(), Some("busybox"));
}

#[tokio::test]
async fn an_error_message_longer_than_usual_headers_arrives_whole() {
    let served = Served::new();
    let long = CriError::new(
        "Status",
        CriErrorKind::Other(Code::Unknown),
        "x".repeat(100_000),
    );
    *served.runtime.error.lock() = Some(long.clone());
    assert_eq!(
        served.client.status(v1::StatusRequest::default()).await,
        Err(long)
    );
}

#[tokio::test]
async fn a_runtime_that_cannot_be_reached_is_named_with_the_reason() {
    let mut served = Served::new();
    served.kill().await;
    let refused = served
        .client
        .status(v1::StatusRequest::default())
        .await
        .unwrap_err();
    served.remove_socket();
    let absent = served
        .client
        .status(v1::StatusRequest::default())
        .await
        .unwrap_err();
    for (error, reason) in [(refused, "nobody listens"), (absent, "no such socket")] {
        assert!(error.is_unavailable(), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(reason) && text.contains(&served.socket_text()),
            "{text}"
        );
    }
}
