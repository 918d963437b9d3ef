//! Lists, whole and streamed.

use rubelet_cri::{CriErrorKind, CriResult, RuntimeService, v1};

use crate::fixture::{Fixture, soon};

/// All containers, streamed if the runtime supports it.
async fn all(fixture: &Fixture) -> CriResult<Vec<String>> {
    let request = v1::ListContainersRequest::default();
    let listed = fixture.client.list_containers(request).await?;
    Ok(listed.containers.into_iter().map(|item| item.id).collect())
}

/// All containers, in one message.
async fn whole(fixture: &Fixture) -> CriResult<Vec<String>> {
    let request = v1::ListContainersRequest {
        filter: Some(v1::ContainerFilter::default()),
    };
    let listed = fixture.client.list_containers(request).await?;
    Ok(listed.containers.into_iter().map(|item| item.id).collect())
}

#[tokio::test]
async fn items_can_be_missing_from_both_kinds_of_list() {
    let fixture = Fixture::new(&[]).await;
    let (_, first) = fixture.start_pod("first").await;
    let (_, second) = fixture.start_pod("second").await;
    for (rules, left) in [
        (["ListContainers empty", "StreamContainers empty"], vec![]),
        (
            [
                "ListContainers pod=first empty",
                "StreamContainers pod=first empty",
            ],
            vec![&second],
        ),
        (
            ["ListContainers partial=0", "StreamContainers partial=0"],
            vec![&first, &second],
        ),
    ] {
        fixture.set_rules(&rules);
        for mut shown in [all(&fixture).await.unwrap(), whole(&fixture).await.unwrap()] {
            shown.sort();
            let mut left: Vec<String> = left.iter().map(ToString::to_string).collect();
            left.sort();
            assert_eq!(shown, left, "{rules:?}");
        }
    }
}

#[tokio::test]
async fn a_list_can_be_larger_than_a_client_accepts() {
    let fixture = Fixture::new(&["ListContainers huge"]).await;
    let error = soon(whole(&fixture)).await.unwrap_err();
    assert_eq!(error.kind, CriErrorKind::ResourceExhausted, "{error}");
    fixture.set_rules(&["ListContainers huge=1MiB"]);
    assert_eq!(soon(whole(&fixture)).await.unwrap().len(), 0);
}

#[tokio::test]
async fn streamed_lists_can_become_unsupported() {
    let fixture = Fixture::new(&["StreamContainers fail=UNIMPLEMENTED"]).await;
    let (_, id) = fixture.start_pod("web").await;
    assert_eq!(all(&fixture).await.unwrap(), vec![id.clone()]);
    assert_eq!(fixture.counts(), [1], "and the whole list was asked for");
    fixture.set_rules(&["StreamContainers fail=INTERNAL"]);
    // A new connection starts again.
    fixture.chaos.cut();
    let failed = async { while all(&fixture).await.is_ok() {} };
    soon(failed).await;
    fixture.set_rules(&[]);
    let good = async {
        while all(&fixture).await.ok() != Some(vec![id.clone()]) {
            tokio::task::yield_now().await;
        }
    };
    soon(good).await;
}

#[tokio::test]
async fn an_aborted_list_is_an_error() {
    for rule in ["StreamContainers eof", "StreamContainers reset"] {
        let fixture = Fixture::new(&[]).await;
        fixture.start_pod("web").await;
        fixture.set_rules(&[rule]);
        soon(all(&fixture)).await.unwrap_err();
    }
}
