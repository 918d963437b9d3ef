//! Large nodes, without a call for each object.

use std::collections::BTreeMap;

use rubelet_cri::v1;

use crate::Sim;

/// The image of the containers that [`Sim::populate`] adds.
const IMAGE: &str = "app";

impl Sim {
    /// Adds a ready sandbox with running containers, without any call, fault or event. Missing
    /// images of containers are added. Returns the identifiers of the sandbox and of the
    /// containers.
    ///
    /// # Panics
    /// Metadata is missing, or its name is taken.
    pub fn add_pod(
        &self,
        sandbox: &v1::PodSandboxConfig,
        containers: impl IntoIterator<Item = v1::ContainerConfig>,
    ) -> (String, Vec<String>) {
        self.with(|state| {
            let run = v1::RunPodSandboxRequest {
                config: Some(sandbox.clone()),
                ..Default::default()
            };
            let emitted = std::mem::replace(&mut state.events.all_events_suppressed, true);
            let ran = state.run_pod_sandbox(&run);
            let pod_sandbox_id = ran
                .expect("a test's pods have names of their own")
                .pod_sandbox_id;
            let add = |config: v1::ContainerConfig| {
                let image = config.image.as_ref().map_or(IMAGE, |spec| &spec.image);
                if state.images.find(image).is_none() {
                    state.images.add(image);
                }
                let create = v1::CreateContainerRequest {
                    pod_sandbox_id: pod_sandbox_id.clone(),
                    config: Some(config),
                    sandbox_config: Some(sandbox.clone()),
                };
                let created = state.create_container(&create);
                let made = created.expect("a test's containers have names of their own");
                let container_id = made.container_id.clone();
                let start = v1::StartContainerRequest { container_id };
                state.start_container(&start).expect("it was just created");
                made.container_id
            };
            let ids = containers.into_iter().map(add).collect();
            state.events.all_events_suppressed = emitted;
            (pod_sandbox_id, ids)
        })
    }

    /// Adds `pods` pods with `containers` running containers each, labelled as the kubelet labels
    /// them: `pod-0`, `pod-1`, ... of namespace `default` with UIDs `uid-0`, `uid-1`, ... and
    /// containers `c0`, `c1`, ... See [`add_pod`](Sim::add_pod).
    ///
    /// # Panics
    /// Such pods exist already.
    pub fn populate(&self, pods: usize, containers: usize) {
        for pod in 0..pods {
            let (name, uid) = (format!("pod-{pod}"), format!("uid-{pod}"));
            let labels = BTreeMap::from(
                [
                    ("io.kubernetes.pod.name", &*name),
                    ("io.kubernetes.pod.namespace", "default"),
                    ("io.kubernetes.pod.uid", &*uid),
                ]
                .map(|(key, value)| (key.to_owned(), value.to_owned())),
            );
            let container = |number: usize| {
                let name = format!("c{number}");
                let mut labels = labels.clone();
                labels.insert("io.kubernetes.container.name".to_owned(), name.clone());
                v1::ContainerConfig {
                    metadata: Some(v1::ContainerMetadata { name, attempt: 0 }),
                    image: Some(v1::ImageSpec {
                        image: IMAGE.to_owned(),
                        ..Default::default()
                    }),
                    labels,
                    ..Default::default()
                }
            };
            let sandbox = v1::PodSandboxConfig {
                metadata: Some(v1::PodSandboxMetadata {
                    name,
                    uid,
                    namespace: "default".to_owned(),
                    attempt: 0,
                }),
                labels: labels.clone(),
                ..Default::default()
            };
            self.add_pod(&sandbox, (0..containers).map(container));
        }
    }
}
