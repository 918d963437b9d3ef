//! Events and objects that cannot be read.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_is_skipped() {
    let odd = json!({"metadata": {"name": "odd", "resourceVersion": "8"}, "data": "text"});
    let (first, to) = TestAnswer::lines(&[
        event("ADDED", odd.clone()),
        event("ADDED", thing("a", 1, 1)),
        bookmark(5, true),
        event("MODIFIED", odd.clone()),
        event("MODIFIED", thing("a", 9, 2)),
    ]);
    let items = json!({"metadata": {"resourceVersion": "7"}, "items": [odd, thing("b", 1, 1)]});
    let server = scripted(vec![
        first,
        refusal(410, "Expired"),
        refusal(400, "BadRequest"),
        TestAnswer::Json(200, items),
    ]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=a1");
    assert_eq!(next(&mut watcher).await, "+a2");
    drop(to);
    assert_eq!(next(&mut watcher).await, "=b1");
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_ends_the_watch_and_not_the_watcher() {
    let (first, to) = TestAnswer::lines(&[bookmark(5, true)]);
    let (second, _to) = TestAnswer::lines(&[event("ADDED", thing("a", 6, 1))]);
    to.send("{\"type\": \"ADDED\", \"obj\n".to_owned()).unwrap();
    let server = scripted(vec![first, second]);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=");
    assert_eq!(next(&mut watcher).await, "+a1");
    assert!(server.asked()[1].has("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_each_time_is_passed_with_a_list() {
    let (first, _to) = TestAnswer::lines(&[bookmark(5, true)]);
    let mut answers = vec![first];
    for _ in 0..3 {
        let (damaged, to) = TestAnswer::lines(&[]);
        to.send("{\"type\": \"ADDED\", \"obj\n".to_owned()).unwrap();
        answers.push(damaged);
    }
    let (last, _to) = TestAnswer::lines(&[event("ADDED", thing("a", 6, 1)), bookmark(6, true)]);
    answers.push(last);
    let server = scripted(answers);
    let mut watcher = watcher(&server.client(true));
    assert_eq!(next(&mut watcher).await, "=");
    drop(_to);
    assert_eq!(next(&mut watcher).await, "=a1");
    let asked = server.asked();
    assert!(asked[3].has("resourceVersion=5") && is_streaming_list(&asked[4]));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_field_is_reported_until_it_can_be_read() {
    let odd = |version| {
        let mut odd = thing("odd", version, 1);
        odd["metadata"]["labels"] = json!(7);
        odd["more"] = json!({"a": 1});
        odd
    };
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    #[serde(default)]
    struct Odd {
        metadata: OddMeta,
        more: std::collections::BTreeMap<String, String>,
    }
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    #[serde(default)]
    struct OddMeta {
        name: String,
        labels: Option<Vec<String>>,
    }
    let (first, to) = TestAnswer::lines(&[event("ADDED", odd(1)), bookmark(5, true)]);
    let items =
        json!({"metadata": {"resourceVersion": "9"}, "items": [odd(9), null, {"metadata": null}]});
    let server = scripted(vec![
        first,
        refusal(410, "Expired"),
        refusal(400, "BadRequest"),
        TestAnswer::Json(200, items),
    ]);
    let client = server.client(true);
    let mut watcher = client.watch::<Odd>(WatchTarget {
        path: "/api/v1/namespaces/ns/things".to_owned(),
        ..WatchTarget::default()
    });
    let shown = || -> Vec<String> {
        let all = client.unreadable().list();
        all.iter()
            .map(|one| {
                let fields: Vec<&str> = one.fields.iter().map(|field| &*field.field).collect();
                format!("{}: {}", one.object, fields.join(" "))
            })
            .collect()
    };
    let Change::Listed(listed) = watcher.next().await else {
        panic!("a list comes first");
    };
    assert_eq!(listed[0].metadata.name, "odd");
    assert_eq!(shown(), ["things ns/odd: metadata.labels more.a"]);
    write(&to, &event("MODIFIED", thing("odd", 6, 1)));
    watcher.next().await;
    assert_eq!(shown(), [""; 0]);
    write(&to, &event("MODIFIED", odd(7)));
    watcher.next().await;
    assert_eq!(shown().len(), 1);
    drop(to);
    assert!(matches!(watcher.next().await, Change::Listed(all) if all.len() == 3));
    assert_eq!(shown(), ["things ns/odd: metadata.labels more.a"]);
    drop(watcher);
    assert_eq!(shown(), [""; 0]);
}
