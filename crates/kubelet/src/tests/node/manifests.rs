//! The manifests of a test node, and its pods in the API server.

use std::{sync::Arc, time::Duration};

use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Deletion, Pod, PodSource},
};
use rubelet_sources::desired::Desired;

use super::{Node, pod_name};

impl Node {
    /// Adds a manifest with this `spec`, or replaces the one of this name. Returns the pod's UID.
    pub(in crate::tests) fn apply(&self, name: &str, spec: &str) -> String {
        self.apply_with(name, "", spec)
    }

    /// The same with more `metadata`, such as `labels: {a: b}`.
    pub(in crate::tests) fn apply_with(&self, name: &str, metadata: &str, spec: &str) -> String {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {metadata}}}\nspec: {{{spec}}}\n"
        );
        self.apply_manifest(name, &text)
    }

    /// The same with the whole text of the manifest.
    pub(in crate::tests) fn apply_manifest(&self, name: &str, text: &str) -> String {
        let pod = self.parse(text);
        let uid = pod.uid.as_str().to_owned();
        self.uids.borrow_mut().insert(name.to_owned(), uid.clone());
        self.change(|desired| {
            desired.pods.insert(pod.name.clone(), Arc::new(pod));
        });
        uid
    }

    /// Makes the pod of this manifest one of the API server, or changes it there.
    pub(in crate::tests) fn change_in_api(&self, name: &str, change: impl FnOnce(&mut Pod)) {
        self.change(|desired| {
            let pod = desired.pods.get_mut(&pod_name(name)).expect("such a pod");
            let pod = Arc::make_mut(pod);
            pod.source = PodSource::Api;
            change(pod);
        });
    }

    /// Deletes the pod in the API server with this grace period.
    pub(in crate::tests) fn delete_in_api(&self, name: &str, seconds: u64) {
        let (now, grace) = (self.clock.now(), Duration::from_secs(seconds));
        self.change_in_api(name, |pod| {
            pod.deletion = Some(Deletion {
                at: rubelet_pod_plan::after(now, grace),
                grace,
            });
            // That of a server that counts them.
            pod.generation += i64::from(pod.generation > 0);
        });
    }

    /// The desired pod.
    pub(in crate::tests) fn desired_pod(&self, name: &str) -> Arc<Pod> {
        Arc::clone(&self.desired.borrow().pods[&pod_name(name)])
    }

    /// Removes the manifest of this name.
    pub(in crate::tests) fn remove_manifest(&self, name: &str) {
        self.change(|desired| {
            let gone = desired.pods.remove(&pod_name(name));
            assert!(gone.is_some(), "there was a manifest {name}");
        });
    }

    /// Replaces all desired pods.
    pub(in crate::tests) fn set_desired(&self, desired: &Arc<Desired>) {
        self.desired.send_replace(Arc::clone(desired));
    }

    /// Sets whether a source was not read yet.
    pub(in crate::tests) fn set_waiting(&self, waiting: bool) {
        self.change(|desired| {
            desired.waiting_for = waiting.then_some(PodSource::Http).into_iter().collect();
        });
    }

    /// Hides this pod, the only one of the API server, as if it had not been listed yet.
    pub(in crate::tests) fn hide_in_api(&self, name: &str) -> Arc<Pod> {
        let hidden = self.desired_pod(name);
        self.remove_manifest(name);
        self.change(|desired| {
            desired.waiting_for.insert(PodSource::Api);
        });
        hidden
    }

    /// Completes the list of the API server, with this pod.
    pub(in crate::tests) fn show_in_api(&self, pod: Arc<Pod>) {
        self.change(|desired| {
            desired.waiting_for.remove(&PodSource::Api);
            desired.pods.insert(pod.name.clone(), pod);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Desired)) {
        self.desired
            .send_modify(|desired| change(Arc::make_mut(desired)));
    }

    fn parse(&self, text: &str) -> Pod {
        let mut documents = decode(text);
        assert!(documents.pods.len() == 1, "one pod: {text}");
        let context = ParseContext {
            node_name: "n",
            source: PodSource::File,
            origin: "/manifests/pod.yaml",
            adopted_uid: None,
            now: self.clock.now(),
        };
        let raw = documents.pods.remove(0).expect("YAML of a pod");
        match parse(raw, &context) {
            Ok(pod) => pod,
            Err(errors) => panic!("{text}: {errors:?}"),
        }
    }

    /// The UID of the pod of this manifest.
    pub(in crate::tests) fn uid(&self, name: &str) -> String {
        let uids = self.uids.borrow();
        uids.get(name).expect("a manifest of this name").clone()
    }
}
