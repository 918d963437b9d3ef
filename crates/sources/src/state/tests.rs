//! The rules, as tables of scans and their results.

mod replaced;

use super::*;
use crate::{
    desired::{PodOperation, diff},
    status::{EventReason, ManifestState},
};

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn pod(name: &str, image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - name: main\n    image: {image}\n"
    )
}

/// A node with a manifest directory, and what is in the directory.
struct Node {
    state: SourceState,
    clock: i64,
}

impl Node {
    fn new() -> Self {
        Self::with(AdoptedPods::new(), &[])
    }

    fn with(adopted: AdoptedPods, held: &[LastGoodPod]) -> Self {
        Self::editing(ManifestEdits::InPlace, adopted, held)
    }

    fn editing(edits: ManifestEdits, adopted: AdoptedPods, held: &[LastGoodPod]) -> Self {
        let sources = [PodSource::File, PodSource::Http];
        Self {
            state: SourceState::new("Node", edits, &sources, adopted, held, time(0)),
            clock: 0,
        }
    }

    /// A node whose edits replace pods.
    fn replacing() -> Self {
        Self::editing(ManifestEdits::Replace, AdoptedPods::new(), &[])
    }

    /// The file was removed and written again.
    fn recreate(&mut self, path: &str, text: &str) {
        let content = Content::Recreated(text.into());
        self.apply(Observation::Scanned {
            source: PodSource::File,
            single: false,
            manifests: vec![(path.into(), content)],
        });
    }

    /// UID of the pod `NAME-node`, and when it was first seen.
    fn identity(&self, name: &str) -> (PodUid, Option<Timestamp>) {
        let name = PodName::new("default", &format!("{name}-node"));
        let pod = &self.state.desired().pods[&name];
        (pod.uid.clone(), seen(pod))
    }

    fn apply(&mut self, observation: Observation) -> Changes {
        self.clock += 1;
        self.state.apply(observation, time(self.clock))
    }

    fn directory(&mut self, files: &[(&str, &str)]) -> Changes {
        let manifests = files
            .iter()
            .map(|(path, text)| ((*path).into(), Content::Bytes((*text).into())));
        let manifests = manifests.collect();
        self.apply(Observation::Scanned {
            source: PodSource::File,
            single: false,
            manifests,
        })
    }

    fn url(&mut self, text: &str) -> Changes {
        let manifests = vec![("http://h/".into(), Content::Bytes(text.into()))];
        self.apply(Observation::Scanned {
            source: PodSource::Http,
            single: true,
            manifests,
        })
    }

    fn fail(&mut self, source: PodSource, origin: &str, reason: Reason) -> Changes {
        let problem = Problem::whole(reason, "for a test");
        self.apply(Observation::Failed {
            source,
            origin: origin.into(),
            problem,
        })
    }

    /// `name=image` of each wanted pod.
    fn pods(&self) -> Vec<String> {
        let show = |pod: &Arc<Pod>| format!("{}={}", pod.name.name, pod.spec.containers[0].image);
        self.state.desired().pods.values().map(show).collect()
    }

    fn status(&self, origin: &str) -> &ManifestStatus {
        let mut all = self.state.statuses().iter();
        all.find(|status| &*status.origin == origin)
            .expect("a status")
    }
}

fn messages(changes: &Changes) -> Vec<&str> {
    changes
        .events
        .iter()
        .map(|event| event.message.as_str())
        .collect()
}

#[test]
fn good_manifests_run_and_a_second_look_changes_nothing() {
    let mut node = Node::new();
    assert!(!node.state.desired().sources_ready());
    let list = format!("{}---\n{}", pod("b", "two"), pod("c", "three"));
    let files = [("/m/a.yaml", &*pod("a", "one")), ("/m/b.yaml", &*list)];
    let changes = node.directory(&files);
    assert_eq!(
        (changes.desired, changes.statuses, changes.held),
        (true, true, false)
    );
    assert_eq!(node.pods(), ["a-node=one", "b-node=two", "c-node=three"]);
    assert_eq!(node.status("/m/b.yaml").state, ManifestState::Ok);
    let names: Vec<_> = node
        .status("/m/b.yaml")
        .pods
        .iter()
        .map(|pod| &*pod.name)
        .collect();
    assert_eq!(names, ["b-node", "c-node"]);
    assert_eq!(node.status("/m/b.yaml").last_good_time, Some(time(1)));
    assert_eq!(node.directory(&files), Changes::default());
    let unchanged = vec![
        ("/m/a.yaml".into(), Content::Unchanged),
        ("/m/b.yaml".into(), Content::Unchanged),
    ];
    let scan = Observation::Scanned {
        source: PodSource::File,
        single: false,
        manifests: unchanged,
    };
    assert_eq!(node.apply(scan), Changes::default());
    assert!(node.directory(&files[..1]).desired);
    assert_eq!(node.pods(), ["a-node=one"]);
}

#[test]
fn a_bad_manifest_keeps_its_pod_and_says_what_is_wrong_where() {
    let good = pod("a", "one");
    for (bad, reason, line, field) in [
        (
            "apiVersion: v1\nkind: [Pod\n",
            Reason::ParseError,
            true,
            None,
        ),
        (
            &good[..good.len() - 16],
            Reason::Invalid,
            true,
            Some("spec.containers[0].image"),
        ),
        (
            &good.replace("image", "imagee"),
            Reason::UnknownField,
            true,
            Some("spec.containers[0].imagee"),
        ),
        (
            &good.replace("image: one", "image: ' '"),
            Reason::Invalid,
            true,
            Some("spec.containers[0].image"),
        ),
        (
            &good.replace("name: a", "labels: {}"),
            Reason::Invalid,
            true,
            Some("metadata.name"),
        ),
        (
            &good.replace("kind: Pod", "kind: Deployment"),
            Reason::Invalid,
            true,
            Some("kind"),
        ),
        (
            &good.replace("- name: main", "- name: {}"),
            Reason::Invalid,
            true,
            None,
        ),
        (
            &(good.clone() + "    lifecycle: {stopSignal: SIGTERM}\n"),
            Reason::NotSupported,
            true,
            Some("spec.containers[0].lifecycle.stopSignal"),
        ),
        ("\u{0}\u{1}", Reason::ParseError, true, None),
        ("  \n\n", Reason::EmptyFile, false, None),
        ("just words", Reason::ParseError, true, None),
    ] {
        let mut node = Node::new();
        node.directory(&[("/m/a", &good), ("/m/b", &pod("b", "two"))]);
        let wanted = Arc::clone(node.state.desired());
        let changes = node.directory(&[("/m/a", bad), ("/m/b", &pod("b", "new"))]);
        assert_eq!(node.pods(), ["a-node=one", "b-node=new"], "{bad}");
        let name = PodName::new("default", "a-node");
        assert!(Arc::ptr_eq(
            &wanted.pods[&name],
            &node.state.desired().pods[&name]
        ));
        let status = node.status("/m/a");
        assert_eq!(
            (status.state, status.reason),
            (ManifestState::Bad, Some(reason)),
            "{status:?}"
        );
        assert_eq!(status.problems[0].line.is_some(), line, "{status:?}");
        if let Some(field) = field {
            assert!(
                status.problems[0]
                    .field
                    .as_deref()
                    .is_some_and(|f| f.starts_with(field)),
                "{status:?}"
            );
        }
        assert_eq!(status.pods.len(), 1);
        assert_eq!(
            (status.last_good_time, status.last_change_time),
            (Some(time(1)), Some(time(2)))
        );
        assert_eq!(changes.events.len(), 1, "{:?}", messages(&changes));
        assert!(changes.events[0].reason.is_warning() && changes.held);

        let again = node.directory(&[("/m/a", bad), ("/m/b", &pod("b", "new"))]);
        assert_eq!(again, Changes::default(), "told once");
        let fixed = node.directory(&[("/m/a", &good), ("/m/b", &pod("b", "new"))]);
        assert_eq!(fixed.events[0].reason, EventReason::ManifestRecovered);
        assert!(fixed.held && node.state.held().is_empty() && !fixed.desired);
    }
}

#[test]
fn a_manifest_that_cannot_be_read_keeps_its_pods() {
    let mut node = Node::new();
    node.directory(&[("/m/a", &pod("a", "one"))]);
    for reason in [Reason::Unreadable, Reason::TooLarge] {
        let refused = Content::Refused(Problem::whole(reason, "for a test"));
        let manifests = vec![("/m/a".into(), refused)];
        let scan = Observation::Scanned {
            source: PodSource::File,
            single: false,
            manifests,
        };
        assert_eq!(node.apply(scan.clone()).events.len(), 1);
        assert_eq!(node.apply(scan), Changes::default());
        assert_eq!(node.pods(), ["a-node=one"]);
        assert_eq!(node.status("/m/a").reason, Some(reason));
    }
}

#[test]
fn what_is_skipped_is_listed_with_its_reason() {
    let mut node = Node::new();
    let manifests = vec![("/m/a~".into(), Content::Skipped(Reason::BackupFile))];
    let scan = Observation::Scanned {
        source: PodSource::File,
        single: false,
        manifests,
    };
    assert_eq!(node.apply(scan.clone()).events, []);
    assert_eq!(node.apply(scan), Changes::default());
    let status = node.status("/m/a~");
    assert_eq!(
        (status.state, status.reason),
        (ManifestState::Skipped, Some(Reason::BackupFile))
    );
}

#[test]
fn a_bad_part_of_a_manifest_stops_neither_the_other_parts_nor_the_pods_that_ran() {
    let mut node = Node::new();
    let three = |a: &str, b: &str, c: &str| [pod("a", a), pod("b", b), pod("c", c)].join("---\n");
    node.directory(&[("/m/a", &three("one", "two", "three"))]);
    let changes = node.directory(&[("/m/a", &three("new", "' '", "three"))]);
    assert_eq!(node.pods(), ["a-node=new", "b-node=two", "c-node=three"]);
    assert_eq!(
        changes.events[0].pod,
        Some(PodName::new("default", "b-node"))
    );
    assert!(changes.events[0].uid.is_some());
    node.directory(&[("/m/a", &(pod("b", "' '") + "---\n" + &pod("d", "four")))]);
    assert_eq!(
        node.pods(),
        ["a-node=new", "b-node=two", "c-node=three", "d-node=four"]
    );
    let held: Vec<_> = node.state.held().iter().map(|pod| &*pod.name).collect();
    assert_eq!(held, ["a-node", "b-node", "c-node"]);
    node.directory(&[("/m/a", &pod("b", "two"))]);
    assert_eq!(node.pods(), ["b-node=two"]);
}

#[test]
fn a_bad_manifest_is_no_obstacle_for_its_good_pods_at_the_first_look() {
    let mut node = Node::new();
    let text = pod("a", "one") + "---\n" + &pod("b", "' '");
    node.directory(&[("/m/a", &text), ("/m/c", "nonsense: [")]);
    assert_eq!(node.pods(), ["a-node=one"]);
    assert!(node.state.desired().ready.contains(&PodSource::File));
}

#[test]
fn a_manifest_without_pods_ends_those_it_had_unless_it_is_blank() {
    for (text, left, state) in [
        ("# all gone\n", 0, ManifestState::Empty),
        (
            "apiVersion: v1\nkind: PodList\nitems: []\n",
            0,
            ManifestState::Empty,
        ),
        ("\n", 1, ManifestState::Bad),
        ("", 1, ManifestState::Bad),
    ] {
        let mut node = Node::new();
        node.directory(&[("/m/a", &pod("a", "one"))]);
        node.directory(&[("/m/a", text)]);
        assert_eq!(node.pods().len(), left, "{text}");
        assert_eq!(node.status("/m/a").state, state, "{text}");
    }
    let mut node = Node::new();
    assert_eq!(node.directory(&[("/m/a", "")]).events, []);
    assert_eq!(node.status("/m/a").state, ManifestState::Empty);
}

#[test]
fn a_pod_belongs_to_one_manifest() {
    let mut node = Node::new();
    let mine = pod("a", "one");
    let copy = pod("a", "two") + "---\n" + &pod("b", "three");
    node.directory(&[("/m/b", &mine)]);
    let changes = node.directory(&[("/m/a", &copy), ("/m/b", &mine)]);
    assert_eq!(
        node.pods(),
        ["a-node=one", "b-node=three"],
        "the one that runs keeps the name"
    );
    let status = node.status("/m/a");
    assert_eq!(
        (status.state, status.reason),
        (ManifestState::Bad, Some(Reason::Duplicate))
    );
    assert!(status.message.contains("/m/b"), "{}", status.message);
    assert_eq!(status.pods.len(), 1);
    assert_eq!(changes.events.len(), 1);
    let uid = node.state.desired().pods[&PodName::new("default", "a-node")]
        .uid
        .clone();
    let changes = node.directory(&[("/m/a", &copy)]);
    assert_eq!(
        node.pods(),
        ["a-node=two", "b-node=three"],
        "the other one takes over"
    );
    assert_eq!(
        node.state.desired().pods[&PodName::new("default", "a-node")].uid,
        uid
    );
    assert_eq!(changes.events[0].reason, EventReason::ManifestRecovered);

    let mut fresh = Node::new();
    fresh.directory(&[("/m/a", &copy), ("/m/b", &mine)]);
    assert_eq!(
        fresh.pods(),
        ["a-node=two", "b-node=three"],
        "else the first by name"
    );
    assert_eq!(fresh.status("/m/b").reason, Some(Reason::Duplicate));
}

#[test]
fn a_pod_defined_twice_in_one_manifest_is_taken_once() {
    let mut node = Node::new();
    let changes = node.directory(&[("/m/a", &(pod("a", "one") + "---\n" + &pod("a", "two")))]);
    assert_eq!(node.pods(), ["a-node=one"]);
    assert_eq!(node.status("/m/a").reason, Some(Reason::Duplicate));
    assert_eq!(changes.events.len(), 1);
}

#[test]
fn directory_and_url_do_not_take_pods_from_each_other() {
    let mut node = Node::new();
    node.url(&pod("a", "url"));
    node.directory(&[("/m/a", &pod("a", "file"))]);
    assert_eq!(node.pods(), ["a-node=url"]);
    let before = Arc::clone(node.state.desired());
    node.url("# none\n");
    assert_eq!(node.pods(), ["a-node=file"]);
    let ops: Vec<_> = diff(&before, node.state.desired())
        .iter()
        .map(|update| update.op)
        .collect();
    assert_eq!(
        ops,
        [PodOperation::Update],
        "it is the same pod, with another image"
    );
}

#[test]
fn renaming_a_manifest_changes_no_pod() {
    let mut node = Node::new();
    node.directory(&[("/m/a", &pod("a", "one"))]);
    let changes = node.directory(&[("/m/z", &pod("a", "one"))]);
    assert_eq!(
        (changes.desired, changes.statuses, changes.events),
        (false, true, vec![])
    );
}

#[test]
fn an_edited_pod_keeps_uid_and_first_sight() {
    let mut node = Node::new();
    node.directory(&[("/m/a", &pod("a", "one"))]);
    let before = Arc::clone(node.state.desired());
    node.directory(&[("/m/a", &pod("a", "two"))]);
    let name = PodName::new("default", "a-node");
    let (old, new) = (&before.pods[&name], &node.state.desired().pods[&name]);
    assert_eq!(old.uid, new.uid);
    assert_eq!(seen(old), Some(time(1)));
    assert_eq!(seen(new), Some(time(1)));
}

#[test]
fn the_uid_of_a_running_pod_is_taken_over_once() {
    let name = PodName::new("default", "a-node");
    let running = AdoptedPod {
        uid: "running".into(),
        content: None,
    };
    let adopted = AdoptedPods::from([(name.clone(), vec![running])]);
    let mut node = Node::with(adopted, &[]);
    let text = pod("a", "one");
    node.directory(&[("/m/a", &text)]);
    assert_eq!(node.state.desired().pods[&name].uid.as_str(), "running");
    node.directory(&[("/m/a", &pod("a", "two"))]);
    assert_eq!(node.state.desired().pods[&name].uid.as_str(), "running");
    node.directory(&[]);
    node.directory(&[("/m/a", &text)]);
    assert_ne!(node.state.desired().pods[&name].uid.as_str(), "running");
}

#[test]
fn a_source_that_cannot_be_read_says_nothing_about_its_pods() {
    let mut node = Node::new();
    let changes = node.fail(PodSource::File, "/m", Reason::Missing);
    assert_eq!(changes.events.len(), 1);
    assert!(node.state.desired().waiting_for.contains(&PodSource::File));
    assert_eq!(node.status("/m").reason, Some(Reason::Missing));
    assert_eq!(
        node.fail(PodSource::File, "/m", Reason::Missing),
        Changes::default()
    );

    let changes = node.directory(&[("/m/a", &pod("a", "one"))]);
    assert_eq!(changes.events[0].reason, EventReason::ManifestRecovered);
    assert!(node.state.desired().ready.contains(&PodSource::File));
    let changes = node.fail(PodSource::File, "/m", Reason::Missing);
    assert_eq!(node.pods(), ["a-node=one"]);
    assert!(node.state.desired().ready.contains(&PodSource::File));
    assert!(changes.held && !changes.desired);
    assert_eq!(node.state.held().len(), 1);
    assert_eq!(node.status("/m/a").state, ManifestState::Ok);
}

#[test]
fn a_failing_url_shows_its_failure_and_keeps_its_pods() {
    let mut node = Node::new();
    node.url(&pod("a", "one"));
    assert_eq!(
        node.fail(PodSource::Http, "http://h/", Reason::Unreachable)
            .events
            .len(),
        1
    );
    let status = node.status("http://h/");
    assert_eq!(
        (status.state, status.reason),
        (ManifestState::Bad, Some(Reason::Unreachable))
    );
    assert_eq!(status.pods.len(), 1);
    node.url(&pod("a", "one"));
    assert_eq!(node.status("http://h/").state, ManifestState::Ok);
}

#[test]
fn a_single_manifest_that_tells_nothing_does_not_make_its_source_ready() {
    let mut node = Node::new();
    node.url("nonsense: [");
    assert!(node.state.desired().waiting_for.contains(&PodSource::Http));
    node.url("");
    assert!(node.state.desired().ready.contains(&PodSource::Http));
}

#[test]
fn what_was_held_survives_a_restart_of_the_agent() {
    let mut node = Node::new();
    let both = pod("a", "one") + "---\n" + &pod("b", "two");
    node.directory(&[("/m/a", &both), ("/m/c", &pod("c", "three"))]);
    let bad = "nonsense: [";
    node.directory(&[("/m/a", bad), ("/m/c", &pod("c", "three"))]);
    let json = serde_json::to_string(&**node.state.held()).expect("held pods are data");
    let held: Vec<LastGoodPod> = serde_json::from_str(&json).expect("the same data");

    let mut restarted = Node::with(AdoptedPods::new(), &held);
    assert_eq!(restarted.pods(), ["a-node=one", "b-node=two"]);
    assert!(!restarted.state.desired().sources_ready());
    restarted.directory(&[("/m/a", bad), ("/m/c", &pod("c", "three"))]);
    assert_eq!(restarted.pods(), node.pods());
    let uids = |node: &Node| -> Vec<_> {
        node.state
            .desired()
            .pods
            .values()
            .map(|pod| pod.uid.clone())
            .collect()
    };
    assert_eq!(uids(&restarted), uids(&node));
    assert_eq!(restarted.state.held(), node.state.held());

    let mut removed = Node::with(AdoptedPods::new(), &held);
    removed.directory(&[]);
    assert_eq!(
        removed.pods(),
        [""; 0],
        "the manifest was deleted meanwhile"
    );
}

#[test]
fn many_problems_make_one_short_message() {
    let mut node = Node::new();
    let text = pod("a", "one").replace(
        "containers",
        "x: 1\n  y: 1\n  z: 1\n  u: 1\n  v: 1\n  containers",
    );
    let changes = node.directory(&[("/m/a", &text)]);
    assert_eq!(changes.events.len(), 1);
    assert!(
        messages(&changes)[0].ends_with("; and 2 more"),
        "{:?}",
        messages(&changes)
    );
    assert_eq!(node.status("/m/a").problems.len(), 5);
}
