//! Dead connections, reloads, and watches that are not read.

use super::*;

#[tokio::test(start_paused = true)]
async fn silence_after_bookmarks_ends_the_watch() {
    for bookmarks in [true, false] {
        let (first, to) = TestAnswer::lines(&[bookmark(5, true)]);
        let (second, _to) = TestAnswer::lines(&[event("ADDED", thing("a", 6, 1))]);
        let server = scripted(vec![first, second]);
        let mut watcher = watcher(&server.client(true));
        assert_eq!(next(&mut watcher).await, "=");
        let start = Instant::now();
        if bookmarks {
            write(&to, &bookmark(5, false));
        }
        assert_eq!(next(&mut watcher).await, "+a1");
        let took = start.elapsed().as_secs();
        match bookmarks {
            true => assert!((240..=245).contains(&took), "{took}"),
            false => assert!(
                (330..=640).contains(&took),
                "the agreed end and a bit: {took}"
            ),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_half_open_is_found_out_by_pings() {
    let connections = Arc::new(Mutex::new(0));
    let server = {
        let (answer, to) =
            TestAnswer::lines(&[event("ADDED", thing("a", 6, 1)), bookmark(6, true)]);
        std::mem::forget(to);
        scripted(vec![answer])
    };
    // The first connection leads nowhere; the others lead to the server.
    let real = server.config(true).connector.unwrap();
    let counted = Arc::clone(&connections);
    let connector = crate::Connector::new(move || {
        let (counted, real) = (Arc::clone(&counted), real.clone());
        async move {
            let first = {
                let mut count = counted.lock();
                *count += 1;
                *count == 1
            };
            if first {
                let (here, there) = tokio::io::duplex(64 * 1024);
                std::mem::forget(there);
                return Ok(Box::new(here) as Box<dyn crate::Stream>);
            }
            (real.connect)().await
        }
    });
    let config = server.config(true).over(connector.http2());
    // The request timeout is longer than the pings take.
    let client = Client::new(config, crate::ClientOptions::default())
        .unwrap()
        .with_limits(0.0, 0, Duration::from_secs(600));
    let mut watcher = watcher(&client);
    let start = Instant::now();
    assert_eq!(next(&mut watcher).await, "=a1");
    assert!(
        start.elapsed() < Duration::from_secs(50),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_reload_the_watch_continues_over_a_new_connection() {
    let (first, _to) = TestAnswer::lines(&[bookmark(5, true)]);
    let (second, _to) = TestAnswer::lines(&[event("ADDED", thing("a", 6, 1))]);
    let server = scripted(vec![first, second]);
    let client = server.client(true);
    let mut watcher = watcher(&client);
    assert_eq!(next(&mut watcher).await, "=");
    let start = Instant::now();
    let waiting = tokio::spawn(async move { next(&mut watcher).await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    client.reload();
    assert_eq!(waiting.await.unwrap(), "+a1");
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(server.connections(), 2);
    assert!(server.asked()[1].has("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn one_watch_is_opened_again_over_a_new_connection_and_the_others_stay() {
    let (other, _to_other) = TestAnswer::lines(&[bookmark(5, true)]);
    let (first, _to) = TestAnswer::lines(&[bookmark(7, true)]);
    let (second, _to) = TestAnswer::lines(&[event("ADDED", thing("a", 8, 1))]);
    let server = scripted(vec![other, first, second]);
    let client = server.client(true);
    let reopener = WatchReopener::default();
    let mut others = watcher(&client);
    assert_eq!(next(&mut others).await, "=");
    let mut watcher = watcher(&client).reopened_by(&reopener);
    assert_eq!(next(&mut watcher).await, "=");
    assert_eq!(server.connections(), 1);
    let start = Instant::now();
    let others = tokio::spawn(async move { next(&mut others).await });
    let waiting = tokio::spawn(async move { next(&mut watcher).await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    reopener.reopen();
    assert_eq!(waiting.await.unwrap(), "+a1");
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(server.connections(), 2);
    assert_eq!(server.asked().len(), 3);
    assert!(server.asked()[2].has("resourceVersion=7"));
    assert!(!others.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_dropped_ends_its_watch_and_keeps_the_connection() {
    let server = TestServer::new(|_| TestAnswer::lines(&[bookmark(5, true)]).0);
    let client = server.client(true);
    for _ in 0..300 {
        let mut watcher = watcher(&client);
        watcher.next().await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_reads_does_not_hold_up_requests() {
    let mut lines = vec![bookmark(5, true)];
    let large = "x".repeat(30_000);
    lines.extend((0..10).map(|_| json!({"type": "ADDED", "object": {"metadata": {}, "x": large}})));
    let lines = Arc::new(lines);
    let server = TestServer::new(move |asked| match asked.has("watch=true") {
        true => {
            let (answer, to) = TestAnswer::lines(&lines);
            std::mem::forget(to);
            answer
        }
        false => TestAnswer::Json(200, json!({})),
    });
    let client = server.client(true);
    let mut watchers: Vec<_> = (0..40).map(|_| watcher(&client)).collect();
    for watcher in &mut watchers {
        watcher.next().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    client
        .get::<Value>("/lease")
        .await
        .expect("requests have a connection of their own");
}

#[tokio::test]
async fn a_watcher_at_rest_is_small() {
    let server = scripted(vec![]);
    let watcher: Watcher<TestObject> = watcher(&server.client(true));
    let WatcherState::Ready(feed) = watcher.state else {
        panic!("nobody has asked yet");
    };
    let run = feed.follow();
    assert!(size_of_val(&run) < 2048, "{}", size_of_val(&run));
}
