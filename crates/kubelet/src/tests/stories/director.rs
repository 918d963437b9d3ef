//! Runs a story: executes the commands of its script at their times.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cri::Timeouts;
use rubelet_image_pull::images::PullParallelism;
use rubelet_sim::{Exec, Hang};
use tokio::time::{Instant, sleep_until};

use super::{
    log::Log,
    story::{Manifest, Story},
};
use crate::tests::node::Node;

/// Commands that probes and hooks run, by their first word, and what they do.
pub(super) type Commands = Arc<Mutex<BTreeMap<String, Exec>>>;

/// The node of a story and the state of its script.
pub(super) struct Director {
    pub(super) node: Node,
    pub(super) log: Log,
    pub(super) pods: Vec<Manifest>,
    /// UIDs by the labels of pods.
    pub(super) uids: BTreeMap<String, String>,
    pub(super) commands: Commands,
    /// Calls that hang until the runtime continues.
    pub(super) hangs: Vec<Hang>,
    pub(super) runs: bool,
}

/// Runs the story and returns its log.
pub(super) async fn run(story: &Story) -> Result<String, String> {
    let began = Instant::now();
    let mut director = Director::new(story);
    for action in &story.first {
        director.perform(action).await?;
    }
    let wanted: Vec<String> = story
        .pods
        .iter()
        .filter(|pod| !pod.later)
        .map(|pod| pod.label.clone())
        .collect();
    for label in wanted {
        director.put_manifest(&label)?;
    }
    director.start();
    for (at, action) in &story.script {
        director.pass(began, *at).await;
        director.log.say(action);
        director.perform(action).await?;
    }
    director.pass(began, story.until).await;
    Ok(director.log.text())
}

impl Director {
    fn new(story: &Story) -> Self {
        let node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
        let log = Log::new(&node, story.pods.len() > 1);
        let commands = Commands::default();
        let script = Arc::clone(&commands);
        node.sim.on_exec(move |_, command| {
            let commands = script.lock();
            let first = command.first().map_or("", String::as_str);
            commands.get(first).cloned().unwrap_or_default()
        });
        Self {
            node,
            log,
            pods: story.pods.clone(),
            uids: BTreeMap::new(),
            commands,
            hangs: Vec::new(),
            runs: false,
        }
    }

    /// Lets time pass.
    async fn pass(&self, began: Instant, until: Duration) {
        sleep_until(began + until).await;
    }

    pub(super) fn start(&mut self) {
        self.node.start();
        self.log.record_events_of(self.node.agent());
        self.runs = true;
    }

    pub(super) async fn kill(&mut self) {
        self.node.kill().await;
        self.log.agent_is_gone();
        self.runs = false;
    }

    pub(super) async fn stop(&mut self) {
        self.node.stop().await;
        self.log.agent_is_gone();
        self.runs = false;
    }

    /// Writes a pod's manifest, replacing one of the same name.
    pub(super) fn put_manifest(&mut self, label: &str) -> Result<(), String> {
        let pod = self.manifest(label)?;
        let (name, text) = (pod.name.clone(), pod.text());
        let uid = self.node.apply_manifest(&name, &text);
        self.log.name_pod(&uid, label);
        self.uids.insert(label.to_owned(), uid);
        Ok(())
    }

    pub(super) fn manifest(&mut self, label: &str) -> Result<&mut Manifest, String> {
        let mut pods = self.pods.iter_mut();
        pods.find(|pod| pod.label == label)
            .ok_or_else(|| format!("the story has no pod {label}"))
    }

    /// The pod of commands that name none: the first.
    pub(super) fn main_pod(&self) -> String {
        self.pods[0].label.clone()
    }

    pub(super) fn uid(&self, label: &str) -> Result<String, String> {
        let uid = self.uids.get(label).cloned();
        uid.ok_or_else(|| format!("there was no manifest of {label} yet"))
    }

    /// UID and name of a container, written as `web` or, with its pod, as `shop/web`. Without a pod
    /// it is the first pod that has a container of this name.
    pub(super) fn container(&self, text: &str) -> Result<(String, String), String> {
        if let Some((pod, name)) = text.split_once('/') {
            return Ok((self.uid(pod)?, name.to_owned()));
        }
        let all = self.node.sim.containers();
        let mut uids = self.pods.iter().filter_map(|pod| self.uids.get(&pod.label));
        let found = uids.find(|uid| {
            all.iter()
                .any(|found| found.pod_uid == **uid && found.name == text)
        });
        match found {
            Some(uid) => Ok((uid.clone(), text.to_owned())),
            None => Ok((self.uid(&self.main_pod())?, text.to_owned())),
        }
    }
}
