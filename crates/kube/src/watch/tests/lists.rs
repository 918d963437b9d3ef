//! Lists: streamed, in pages, and again when a version is too old.

use super::*;

fn page(names: &[&str], version: u32, continues: &str) -> TestAnswer {
    let items: Vec<Value> = names.iter().map(|name| thing(name, 1, 1)).collect();
    let metadata = json!({"resourceVersion": version.to_string(), "continue": continues});
    TestAnswer::Json(
        200,
        json!({"kind": "ThingList", "metadata": metadata, "items": items}),
    )
}

#[tokio::test(start_paused = true)]
async fn without_streaming_lists_there_are_pages() {
    for refused in [422, 400] {
        let (watch, to) = TestAnswer::lines(&[]);
        let server = scripted(vec![
            refusal(refused, "Invalid"),
            page(&["a", "b"], 7, "next/1"),
            page(&["c"], 7, ""),
            watch,
            page(&[], 9, ""),
        ]);
        let client = server.client(true);
        let mut first = watcher(&client);
        assert_eq!(next(&mut first).await, "=a1,b1,c1");
        write(&to, &event("ADDED", thing("d", 8, 1)));
        assert_eq!(next(&mut first).await, "+d1");
        let mut second = watcher(&client);
        assert_eq!(next(&mut second).await, "=");
        let asked = server.asked();
        assert!(is_streaming_list(&asked[0]));
        assert!(asked[1].has("limit=500") && !asked[1].path.contains("resourceVersion"));
        assert!(asked[2].has("limit=500") && asked[2].has("continue=next%2F1"));
        assert!(asked[3].has("resourceVersion=7") && !is_streaming_list(&asked[3]));
        assert!(
            asked[4].has("limit=500"),
            "the server is not asked twice for what it can't do"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_continue_token_means_one_list_without_pages() {
    let server = scripted(vec![
        refusal(422, "Invalid"),
        page(&["a"], 7, "more"),
        refusal(410, "Expired"),
        page(&["a", "b"], 9, ""),
    ]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=a1,b1");
    assert!(!server.asked()[3].path.contains("limit"));
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_stands_still_is_replaced_by_pages() {
    let (silent, _to) = TestAnswer::lines(&[event("ADDED", thing("a", 1, 1))]);
    let server = scripted(vec![silent, page(&["a", "b"], 7, "")]);
    let mut watcher = watcher(&server.client(true));
    let start = Instant::now();
    assert_eq!(next(&mut watcher).await, "=a1,b1");
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn when_the_version_is_too_old_everything_is_listed_at_once() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    for by_event in [true, false] {
        let (first, to) = TestAnswer::lines(&[event("ADDED", thing("a", 1, 1)), bookmark(5, true)]);
        let (again, _to) =
            TestAnswer::lines(&[event("ADDED", thing("b", 9, 1)), bookmark(9, true)]);
        let server = scripted(match by_event {
            true => vec![first, again],
            false => vec![first, refusal(410, "Expired"), again],
        });
        let mut watcher = watcher(&server.client(true));
        assert_eq!(next(&mut watcher).await, "=a1");
        let start = Instant::now();
        let waiting = tokio::spawn(async move { next(&mut watcher).await });
        tokio::time::sleep(Duration::from_secs(100)).await;
        if by_event {
            write(&to, &event("ERROR", gone.clone()));
        }
        drop(to);
        assert_eq!(waiting.await.unwrap(), "=b1");
        assert_eq!(start.elapsed().as_secs(), 100);
        assert!(is_streaming_list(server.asked().last().unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_versions_are_always_too_old_is_not_hammered() {
    let server = TestServer::new(|asked| match is_streaming_list(asked) {
        true => {
            let gone = event("ERROR", json!({"code": 410}));
            TestAnswer::lines(&[bookmark(5, true), gone]).0
        }
        false => refusal(410, "Expired"),
    });
    let client = server.client(true);
    let mut watcher = watcher(&client);
    let minute = async {
        loop {
            watcher.next().await;
        }
    };
    assert!(timeout(Duration::from_secs(60), minute).await.is_err());
    assert!(server.asked().len() < 10, "{}", server.asked().len());
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_not_a_list_is_not_an_empty_list() {
    let meta = json!({"resourceVersion": "7", "continue": null, "remainingItemCount": null});
    let odd = [
        json!({}),
        json!({"kind": "Status", "metadata": {}, "status": "Success"}),
        json!({"kind": "ThingList", "metadata": meta, "items": "none"}),
        json!([]),
        json!(null),
    ];
    let mut answers = vec![refusal(400, "BadRequest")];
    answers.extend(odd.into_iter().map(|body| TestAnswer::Json(200, body)));
    answers.push(TestAnswer::Json(
        200,
        json!({"kind": "ThingList", "metadata": meta, "items": null}),
    ));
    let server = scripted(answers);
    let client = server.client(true);
    client.without_streaming_lists();
    let mut watcher = watcher(&client);
    assert_eq!(next(&mut watcher).await, "=");
    assert_eq!(server.asked().len(), 7);
}
