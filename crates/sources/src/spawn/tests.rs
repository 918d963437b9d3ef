//! Real directories and servers: what users see when they write, move and break manifests.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

use parking_lot::Mutex;
use tokio::time::timeout;

use super::*;
use crate::{
    status::ManifestState,
    url::tests::{Server, answer},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than any poll: only events can explain a change.
const NEVER: Duration = Duration::from_secs(3600);

fn manifest(name: &str, image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - name: main\n    image: {image}\n"
    )
}

fn clock() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn watch_path(path: &Path, check_frequency: Duration) -> SourcesHandle {
    let file = FileConfig {
        path: path.to_owned(),
        check_frequency,
    };
    let config = SourcesConfig {
        node_name: "n".to_owned(),
        file: Some(file),
        ..SourcesConfig::default()
    };
    spawn(config, clock).unwrap()
}

fn shown(desired: &Desired) -> String {
    let show = |pod: &Arc<rubelet_api::pod::Pod>| {
        format!("{}={}", pod.name.name, pod.spec.containers[0].image)
    };
    desired
        .pods
        .values()
        .map(show)
        .collect::<Vec<_>>()
        .join(" ")
}

impl SourcesHandle {
    /// Waits for these pods.
    async fn pods(&mut self, expected: &str) {
        let reached = self.desired.wait_for(|desired| shown(desired) == expected);
        let reached = timeout(PATIENCE, reached)
            .await
            .map(|result| result.map(|_| ()));
        if reached.is_err() {
            panic!(
                "{expected:?} not reached: {:?}",
                shown(&self.desired.borrow())
            );
        }
    }

    async fn ready(&mut self) {
        let ready = self.desired.wait_for(|desired| desired.sources_ready());
        timeout(PATIENCE, ready)
            .await
            .expect("ready")
            .expect("running");
    }

    /// Waits until a manifest has this state and reason.
    async fn status(&mut self, name: &str, state: ManifestState, reason: Option<Reason>) {
        let reached = self.manifests.wait_for(|all| {
            let mut all = all.iter().filter(|status| status.origin.ends_with(name));
            all.any(|status| status.state == state && status.reason == reason)
        });
        let reached = timeout(PATIENCE, reached)
            .await
            .map(|result| result.map(|_| ()));
        if reached.is_err() {
            panic!("{name} is not {state:?}: {:?}", self.manifests.borrow());
        }
    }

    async fn event(&mut self) -> ManifestEvent {
        timeout(PATIENCE, self.events.recv())
            .await
            .expect("an event")
            .expect("running")
    }
}

#[tokio::test]
async fn writing_moving_and_removing_files_is_seen_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.yaml"), manifest("a", "one")).unwrap();
    let mut sources = watch_path(dir.path(), NEVER);
    sources.pods("a-n=one").await;
    fs::write(at("b.yaml"), manifest("b", "one")).unwrap();
    sources.pods("a-n=one b-n=one").await;
    fs::write(at("a.yaml"), manifest("a", "two")).unwrap();
    sources.pods("a-n=two b-n=one").await;
    // As careful programs write.
    fs::write(at(".b.yaml.tmp"), manifest("b", "two")).unwrap();
    fs::rename(at(".b.yaml.tmp"), at("b.yaml")).unwrap();
    sources.pods("a-n=two b-n=two").await;
    // As a directory of links is switched over.
    let target = tempfile::NamedTempFile::new().unwrap();
    fs::write(target.path(), manifest("c", "one")).unwrap();
    std::os::unix::fs::symlink(target.path(), at("c.yaml")).unwrap();
    sources.pods("a-n=two b-n=two c-n=one").await;
    fs::remove_file(at("a.yaml")).unwrap();
    sources.pods("b-n=two c-n=one").await;
    fs::rename(at("b.yaml"), at(".b.yaml")).unwrap();
    sources.pods("c-n=one").await;
}

#[tokio::test]
async fn a_file_counts_when_its_writer_closes_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut sources = watch_path(dir.path(), NEVER);
    sources.ready().await;
    let mut slow = File::create(dir.path().join("slow.yaml")).unwrap();
    let text = manifest("slow", "one");
    let (first, second) = text.split_at(text.len() / 2);
    slow.write_all(first.as_bytes()).unwrap();
    // Another file makes a scan, by which the half-written one must not be judged.
    fs::write(dir.path().join("other.yaml"), manifest("other", "one")).unwrap();
    sources.pods("other-n=one").await;
    assert_eq!(sources.manifests.borrow().len(), 1);
    slow.write_all(second.as_bytes()).unwrap();
    drop(slow);
    sources.pods("other-n=one slow-n=one").await;
    assert!(sources.events.try_recv().is_err());
}

#[tokio::test]
async fn an_editor_that_moves_the_old_file_away_ends_no_pod() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.yaml"), manifest("a", "one")).unwrap();
    fs::write(at("b.yaml"), manifest("b", "one")).unwrap();
    let mut sources = watch_path(dir.path(), NEVER);
    sources.pods("a-n=one b-n=one").await;
    fs::rename(at("a.yaml"), at("a.yaml~")).unwrap();
    // Longer than a burst of events lasts, shorter than a manifest is waited for.
    let between = timeout(Duration::from_millis(120), sources.desired.changed()).await;
    assert!(between.is_err(), "{:?}", shown(&sources.desired.borrow()));
    fs::write(at("a.yaml"), manifest("a", "two")).unwrap();
    timeout(PATIENCE, sources.desired.changed())
        .await
        .expect("a change")
        .expect("running");
    assert_eq!(
        shown(&sources.desired.borrow()),
        "a-n=two b-n=one",
        "the first change"
    );
    sources
        .status("a.yaml~", ManifestState::Skipped, Some(Reason::BackupFile))
        .await;
}

#[tokio::test]
async fn a_manifest_that_is_removed_and_written_again_at_once_is_another_pod_where_edits_replace() {
    for (edits, replaces) in [
        (ManifestEdits::Replace, true),
        (ManifestEdits::InPlace, false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a.yaml"), manifest("a", "one")).unwrap();
        let config = SourcesConfig {
            node_name: "n".to_owned(),
            file: Some(FileConfig {
                path: dir.path().to_owned(),
                check_frequency: NEVER,
            }),
            edits,
            ..SourcesConfig::default()
        };
        let mut sources = spawn(config, clock).unwrap();
        sources.pods("a-n=one").await;
        let uid = |sources: &SourcesHandle| {
            let desired = sources.desired.borrow();
            let pod = desired.pods.values().find(|pod| &*pod.name.name == "a-n");
            pod.map(|pod| pod.uid.clone())
        };
        let before = uid(&sources);
        // Written over, moved over: the same pod.
        fs::write(at("a.yaml"), manifest("a", "one")).unwrap();
        fs::write(at(".a.tmp"), manifest("a", "one")).unwrap();
        fs::rename(at(".a.tmp"), at("a.yaml")).unwrap();
        fs::write(at("b.yaml"), manifest("b", "one")).unwrap();
        sources.pods("a-n=one b-n=one").await;
        assert_eq!(uid(&sources), before);
        fs::remove_file(at("a.yaml")).unwrap();
        fs::write(at("a.yaml"), manifest("a", "one")).unwrap();
        fs::write(at("c.yaml"), manifest("c", "one")).unwrap();
        sources.pods("a-n=one b-n=one c-n=one").await;
        assert_eq!(uid(&sources) != before, replaces, "{edits:?}");
    }
}

#[tokio::test]
async fn a_broken_file_has_a_status_and_an_event_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.yaml"), manifest("a", "one")).unwrap();
    let mut sources = watch_path(dir.path(), NEVER);
    sources.pods("a-n=one").await;
    fs::write(at("a.yaml"), "kind: [").unwrap();
    sources
        .status("a.yaml", ManifestState::Bad, Some(Reason::ParseError))
        .await;
    let event = sources.event().await;
    assert_eq!(event.reason, EventReason::FailedManifest);
    assert!(
        event.message.contains("a.yaml: line 1"),
        "{}",
        event.message
    );
    fs::write(at("b.yaml"), manifest("b", "one")).unwrap();
    sources.pods("a-n=one b-n=one").await;
    assert_eq!(sources.held.borrow().len(), 1);
    fs::write(at("a.yaml"), manifest("a", "two")).unwrap();
    sources.pods("a-n=two b-n=one").await;
    assert_eq!(sources.event().await.reason, EventReason::ManifestRecovered);
}

#[tokio::test]
async fn a_directory_that_comes_later_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etc/manifests");
    let mut sources = watch_path(&path, NEVER);
    sources
        .status("manifests", ManifestState::Bad, Some(Reason::Missing))
        .await;
    assert!(!sources.desired.borrow().sources_ready());
    fs::create_dir_all(&path).unwrap();
    sources.ready().await;
    fs::write(path.join("a.yaml"), manifest("a", "one")).unwrap();
    sources.pods("a-n=one").await;
}

#[tokio::test]
async fn a_directory_that_goes_away_leaves_its_pods_until_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let (path, aside) = (dir.path().join("manifests"), dir.path().join("aside"));
    fs::create_dir(&path).unwrap();
    fs::write(path.join("a.yaml"), manifest("a", "one")).unwrap();
    let mut sources = watch_path(&path, NEVER);
    sources.pods("a-n=one").await;
    fs::rename(&path, &aside).unwrap();
    sources
        .status("manifests", ManifestState::Bad, Some(Reason::Missing))
        .await;
    assert_eq!(shown(&sources.desired.borrow()), "a-n=one");
    fs::write(aside.join("b.yaml"), manifest("b", "one")).unwrap();
    fs::rename(&aside, &path).unwrap();
    sources.pods("a-n=one b-n=one").await;
    fs::remove_file(path.join("a.yaml")).unwrap();
    sources.pods("b-n=one").await;
}

#[tokio::test]
async fn a_directory_behind_a_link_is_followed_when_the_link_turns() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["one", "two"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("a.yaml"), manifest("a", name)).unwrap();
    }
    std::os::unix::fs::symlink(at("one"), at("link")).unwrap();
    let mut sources = watch_path(&at("link"), NEVER);
    sources.pods("a-n=one").await;
    std::os::unix::fs::symlink(at("two"), at("new")).unwrap();
    fs::rename(at("new"), at("link")).unwrap();
    sources.pods("a-n=two").await;
    fs::write(at("two").join("a.yaml"), manifest("a", "three")).unwrap();
    sources.pods("a-n=three").await;
}

#[tokio::test]
async fn a_single_file_is_watched_through_replacement_and_removal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pod.yaml");
    let mut sources = watch_path(&path, NEVER);
    sources
        .status("pod.yaml", ManifestState::Bad, Some(Reason::Missing))
        .await;
    fs::write(&path, manifest("a", "one")).unwrap();
    sources.pods("a-n=one").await;
    fs::write(dir.path().join("other.yaml"), manifest("b", "one")).unwrap();
    fs::write(dir.path().join("new"), manifest("a", "two")).unwrap();
    fs::rename(dir.path().join("new"), &path).unwrap();
    sources.pods("a-n=two").await;
    fs::remove_file(&path).unwrap();
    sources.pods("").await;
    assert!(sources.desired.borrow().sources_ready());
}

#[tokio::test]
async fn what_events_do_not_tell_is_found_by_the_full_look() {
    let dir = tempfile::tempdir().unwrap();
    let target = tempfile::NamedTempFile::new().unwrap();
    fs::write(target.path(), manifest("a", "one")).unwrap();
    std::os::unix::fs::symlink(target.path(), dir.path().join("a.yaml")).unwrap();
    let mut sources = watch_path(dir.path(), Duration::from_millis(100));
    sources.pods("a-n=one").await;
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(target.path())
        .unwrap();
    file.write_all(manifest("a", "two").as_bytes()).unwrap();
    sources.pods("a-n=two").await;
}

#[tokio::test]
async fn a_url_is_asked_again_and_again_and_its_failures_change_no_pod() {
    let page = Arc::new(Mutex::new((200, manifest("a", "one"))));
    let shown_page = Arc::clone(&page);
    let server = Server::start(move |_| {
        let (status, text) = &*shown_page.lock();
        answer(*status, text)
    })
    .await;
    let config = |url: String| SourcesConfig {
        node_name: "n".to_owned(),
        url: Some(UrlConfig {
            url,
            headers: Vec::new(),
            check_frequency: Duration::from_millis(100),
            roots: Roots::System,
        }),
        ..SourcesConfig::default()
    };
    let url = format!("http://{}/m", server.address);
    let mut sources = spawn(config(url.clone()), clock).unwrap();
    sources.pods("a-n=one").await;
    *page.lock() = (200, manifest("a", "two"));
    sources.pods("a-n=two").await;
    *page.lock() = (503, "busy".to_owned());
    sources
        .status("/m", ManifestState::Bad, Some(Reason::Unreachable))
        .await;
    assert_eq!(shown(&sources.desired.borrow()), "a-n=two");
    *page.lock() = (200, "kind: [".to_owned());
    sources
        .status("/m", ManifestState::Bad, Some(Reason::ParseError))
        .await;
    assert_eq!(shown(&sources.desired.borrow()), "a-n=two");
    *page.lock() = (200, manifest("b", "one"));
    sources.pods("b-n=one").await;

    for bad in ["ftp://host/", "nonsense", "http://"] {
        let error = spawn(config(bad.to_owned()), clock).unwrap_err();
        assert!(matches!(error, SourcesError::Url(_)));
    }
    let mut with_header = config(url);
    let url_config = with_header.url.as_mut().unwrap();
    url_config
        .headers
        .push(("bad name".to_owned(), "secret".to_owned()));
    let error = spawn(with_header, clock).unwrap_err();
    assert!(error.to_string().contains("bad name") && !error.to_string().contains("secret"));
}

#[tokio::test]
async fn without_sources_nothing_is_waited_for() {
    let mut sources = spawn(SourcesConfig::default(), clock).unwrap();
    sources.ready().await;
    assert!(sources.manifests.borrow().is_empty());
}
