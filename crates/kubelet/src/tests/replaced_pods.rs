//! Edited manifests of static pods with `staticPodEdits: Replace`: sources and agent together.

use std::{sync::Arc, time::Duration};

use rubelet_api::pod::PodSource;
use rubelet_base::PodName;
use rubelet_sim::{Behavior, Exec};
use rubelet_sources::{
    desired::Desired,
    state::{AdoptedPod, AdoptedPods, Content, ManifestEdits, Observation, SourceState},
};
use tokio::time::sleep;

use super::node::{Node, seconds};

/// A manifest of a pod whose hook takes six seconds, and which exits two seconds after SIGTERM.
fn manifest(image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  \
         terminationGracePeriodSeconds: 20\n  containers:\n  \
         - {{name: app, image: 'app:{image}', lifecycle: {{preStop: {{exec: {{command: [bye]}}}}}}}}\n"
    )
}

/// A node with a manifest directory that contains one manifest.
struct StaticNode {
    node: Node,
    state: SourceState,
    manifest: String,
}

impl StaticNode {
    async fn new() -> Self {
        let node = Node::new();
        let behavior = Behavior::runs().exiting_on_term(seconds(2), 0);
        node.sim.on_container("app", behavior);
        node.sim.on_exec(|_, _| Exec::exits(0).after(seconds(6)));
        let state = SourceState::new(
            "n",
            ManifestEdits::Replace,
            &[PodSource::File],
            AdoptedPods::new(),
            &[],
            node.now(),
        );
        let mut new = Self {
            node,
            state,
            manifest: manifest("1"),
        };
        new.scan(Content::Bytes(new.manifest.clone().into()));
        let uid = new.uid();
        new.runs(&uid).await;
        new
    }

    /// Reads the directory.
    fn scan(&mut self, content: Content) {
        let observation = Observation::Scanned {
            source: PodSource::File,
            single: false,
            manifests: vec![("/m/web.yaml".into(), content)],
        };
        self.state.apply(observation, self.node.now());
        self.node.set_desired(self.state.desired());
    }

    fn edit(&mut self) {
        self.manifest = manifest("2");
        self.scan(Content::Bytes(self.manifest.clone().into()));
    }

    /// The UID of the desired pod.
    fn uid(&self) -> String {
        let name = PodName::new("default", "web-n");
        self.state.desired().pods[&name].uid.to_string()
    }

    async fn runs(&self, uid: &str) {
        let runs = |node: &Node| node.sim.running(uid, "app").is_some();
        self.node.until("the pod runs", runs).await;
    }

    /// Kills the agent and starts the next one as in production: it lists the runtime, reads its
    /// records and then the manifests.
    async fn kill_agent(&mut self, records_lost: bool) {
        self.node.kill().await;
        if records_lost {
            for file in std::fs::read_dir(self.node.records()).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
        let unread = Desired {
            waiting_for: [PodSource::File].into(),
            ..Desired::default()
        };
        self.node.set_desired(&Arc::new(unread));
        self.node.start();
        self.node.agent().first_relist(seconds(5)).await;
        let mut adopted = AdoptedPods::new();
        for (name, uid, content) in self.node.agent().static_pods().await {
            let pods = adopted.entry(name).or_default();
            pods.push(AdoptedPod { uid, content });
        }
        self.state = SourceState::new(
            "n",
            ManifestEdits::Replace,
            &[PodSource::File],
            adopted,
            &[],
            self.node.now(),
        );
        self.scan(Content::Bytes(self.manifest.clone().into()));
    }

    /// Waits until only the new pod is there, and checks that it started after the old one had
    /// terminated gracefully.
    async fn replaced(&self, old: &str, what: &str) {
        let new = self.uid();
        assert_ne!(new, old, "{what}");
        self.runs(&new).await;
        let node = &self.node;
        assert!(node.is_gone(old), "{what}: {}", node.failure_report());
        let (ends, starts) = (node.exit_times(old, "app"), node.start_times(&new, "app"));
        assert_eq!((ends.len(), starts.len()), (1, 1), "{what}");
        assert!(ends[0] <= starts[0], "{what}: both ran at the same time");
        let terms = node.term_times(old, "app");
        assert_eq!(terms.len(), 1, "{what}: it got SIGTERM and was not killed");
        assert_eq!(ends[0] - terms[0], seconds(2), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_pod_of_an_edited_manifest_ends_before_the_next_one_starts() {
    let mut node = StaticNode::new().await;
    let old = node.uid();
    let edited = node.node.uptime();
    node.edit();
    node.replaced(&old, "edited").await;
    let took = node.node.start_times(&node.uid(), "app")[0] - edited;
    assert!(took >= seconds(8) && took < seconds(9), "{took:?}");
    let entry = node.node.pod("web").unwrap();
    assert_eq!(entry.pod.uid.as_str(), node.uid());
    let replaced = entry.history.replaced.clone().unwrap();
    assert_eq!(replaced.uid.as_str(), old, "`why` tells");
}

#[tokio::test(start_paused = true)]
async fn only_the_terminating_pod_is_published_meanwhile() {
    let mut node = StaticNode::new().await;
    let old = node.uid();
    node.edit();
    for _ in 0..70 {
        sleep(Duration::from_millis(100)).await;
        let rows = node.node.agent().pods.list();
        let uids: Vec<_> = rows.iter().map(|(uid, ..)| uid.as_str()).collect();
        assert_eq!(uids, [old.as_str()]);
    }
    node.replaced(&old, "edited").await;
}

#[tokio::test(start_paused = true)]
async fn a_manifest_that_is_removed_and_written_again_restarts_its_pod() {
    let mut node = StaticNode::new().await;
    let old = node.uid();
    node.scan(Content::Recreated(node.manifest.clone().into()));
    node.replaced(&old, "written again").await;
}

#[tokio::test(start_paused = true)]
async fn a_replacement_survives_the_death_of_the_agent() {
    // The pod ends after 8 s, and the next one starts at once.
    for at in [
        0, 1, 5, 20, 100, 3_000, 6_000, 6_100, 7_990, 8_000, 8_005, 8_010, 8_020, 8_050,
    ] {
        for records_lost in [false, true] {
            let mut node = StaticNode::new().await;
            let old = node.uid();
            node.edit();
            sleep(Duration::from_millis(at)).await;
            node.kill_agent(records_lost).await;
            let what = format!("killed after {at} ms, records lost: {records_lost}");
            assert_ne!(node.uid(), old, "{what}");
            node.runs(&node.uid()).await;
            assert!(node.node.is_gone(&old), "{what}");
            let ends = node.node.exit_times(&old, "app");
            let starts = node.node.start_times(&node.uid(), "app");
            assert_eq!((ends.len(), starts.len()), (1, 1), "{what}");
            assert!(ends[0] <= starts[0], "{what}");
            assert_eq!(node.node.term_times(&old, "app").len(), 1, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_agent_replaces_no_unedited_pod() {
    for records_lost in [false, true] {
        let mut node = StaticNode::new().await;
        // Its UID is not the first one for this content.
        node.scan(Content::Recreated(node.manifest.clone().into()));
        let uid = node.uid();
        node.runs(&uid).await;
        node.kill_agent(records_lost).await;
        assert_eq!(node.uid(), uid);
        sleep(seconds(60)).await;
        assert_eq!(node.node.start_times(&uid, "app").len(), 1);
        assert!(node.node.exit_times(&uid, "app").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_manifest_edited_while_no_agent_ran_replaces_its_pod() {
    for records_lost in [false, true] {
        let mut node = StaticNode::new().await;
        let old = node.uid();
        node.manifest = manifest("2");
        node.kill_agent(records_lost).await;
        let what = format!("records lost: {records_lost}");
        node.replaced(&old, &what).await;
    }
}
