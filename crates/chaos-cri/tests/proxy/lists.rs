//! Lists, whole and in pieces.

use rubelet_cri::{CriErrorKind, CriResult, RuntimeService, v1};

use crate::place::{Place, soon};

/// All containers: in pieces where the runtime offers it.
async fn all(place: &Place) -> CriResult<Vec<String>> {
    let request = v1::ListContainersRequest::default();
    let listed = place.client.list_containers(request).await?;
    Ok(listed.containers.into_iter().map(|item| item.id).collect())
}

/// All containers, in one message.
async fn whole(place: &Place) -> CriResult<Vec<String>> {
    let request = v1::ListContainersRequest {
        filter: Some(v1::ContainerFilter::default()),
    };
    let listed = place.client.list_containers(request).await?;
    Ok(listed.containers.into_iter().map(|item| item.id).collect())
}

#[tokio::test]
async fn items_can_be_missing_from_both_kinds_of_list() {
    let place = Place::new(&[]).await;
    let (_, first) = place.start_pod("first").await;
    let (_, second) = place.start_pod("second").await;
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
        place.set_rules(&rules);
        for mut shown in [all(&place).await.unwrap(), whole(&place).await.unwrap()] {
            shown.sort();
            let mut left: Vec<String> = left.iter().map(ToString::to_string).collect();
            left.sort();
            assert_eq!(shown, left, "{rules:?}");
        }
    }
}

#[tokio::test]
async fn a_list_can_be_larger_than_a_client_takes() {
    let place = Place::new(&["ListContainers huge"]).await;
    let error = soon(whole(&place)).await.unwrap_err();
    assert_eq!(error.kind, CriErrorKind::ResourceExhausted, "{error}");
    place.set_rules(&["ListContainers huge=1MiB"]);
    assert_eq!(soon(whole(&place)).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_list_in_pieces_comes_and_goes() {
    let place = Place::new(&["StreamContainers fail=UNIMPLEMENTED"]).await;
    let (_, id) = place.start_pod("web").await;
    assert_eq!(all(&place).await.unwrap(), vec![id.clone()]);
    assert_eq!(place.counts(), [1], "and the whole list was asked for");
    place.set_rules(&["StreamContainers fail=INTERNAL"]);
    // A new connection is asked anew.
    place.chaos.cut();
    let failed = async { while all(&place).await.is_ok() {} };
    soon(failed).await;
    place.set_rules(&[]);
    let good = async {
        while all(&place).await.ok() != Some(vec![id.clone()]) {
            tokio::task::yield_now().await;
        }
    };
    soon(good).await;
}

#[tokio::test]
async fn half_a_list_is_no_list() {
    for rule in ["StreamContainers eof", "StreamContainers reset"] {
        let place = Place::new(&[]).await;
        place.start_pod("web").await;
        place.set_rules(&[rule]);
        soon(all(&place)).await.unwrap_err();
    }
}
