//! `/metrics/cadvisor`: what dashboards read. Source of the names, types and labels:
//! `github.com/google/cadvisor/metrics` v0.56 and `pkg/kubelet/server/server.go` of Kubernetes 1.36.

mod disk;
mod machine;
mod usage;

use jiff::Timestamp;
use rubelet_host::cgroup::CgroupStats;

use crate::{
    exposition::{Exposition, MetricValues, SharedLabels},
    from_cgroup,
    sample::{
        CgroupSample, ContainerSample, NetworkSample, NodeSample, PodSample, StatsSample,
        UsageSample,
    },
};

/// An object with usage: the node, all pods, a pod or a container.
struct MeasuredObject<'a> {
    /// The cgroup's path, or the runtime's identifier where that is unknown.
    id: &'a str,
    /// The runtime's identifier of a container; empty for others.
    name: &'a str,
    image: &'a str,
    namespace: &'a str,
    pod: &'a str,
    container: &'a str,
    usage: UsageSample,
    /// What only cgroups have.
    cgroup: Option<&'a CgroupSample>,
    network: Option<&'a NetworkSample>,
    of: Option<&'a ContainerSample>,
    /// Those of all its values.
    labels: SharedLabels,
}

impl<'a> MeasuredObject<'a> {
    fn with_labels(self) -> Self {
        // In the order of their names.
        let labels = SharedLabels::new(&[
            ("container", self.container),
            ("id", self.id),
            ("image", self.image),
            ("name", self.name),
            ("namespace", self.namespace),
            ("pod", self.pod),
        ]);
        Self { labels, ..self }
    }

    fn stats(&self) -> Option<&'a CgroupStats> {
        self.cgroup.map(|cgroup| &cgroup.stats)
    }

    fn of_node(node: &'a NodeSample) -> Self {
        Self {
            id: "/",
            usage: node.usage,
            network: node.network.as_ref(),
            ..NOTHING
        }
    }

    fn of_all_pods(cgroup: &'a CgroupSample) -> Self {
        Self {
            id: &cgroup.path,
            usage: from_cgroup::usage(&cgroup.stats, cgroup.at),
            cgroup: Some(cgroup),
            ..NOTHING
        }
    }

    fn of_pod(pod: &'a PodSample) -> Self {
        let cgroup = pod.cgroup.as_deref();
        Self {
            id: cgroup.map_or(&*pod.uid, |cgroup| &*cgroup.path),
            namespace: &pod.namespace,
            pod: &pod.name,
            usage: pod.usage,
            cgroup,
            network: pod.network.as_ref(),
            ..NOTHING
        }
    }

    fn of_container(pod: &'a PodSample, container: &'a ContainerSample) -> Self {
        let cgroup = container.cgroup.as_deref();
        Self {
            id: cgroup.map_or(&*container.id, |cgroup| &*cgroup.path),
            name: &container.id,
            image: &container.image,
            container: &container.name,
            usage: container.usage,
            cgroup,
            network: None,
            of: Some(container),
            ..Self::of_pod(pod)
        }
    }
}

/// An object of which nothing is known.
const NOTHING: MeasuredObject<'static> = MeasuredObject {
    id: "",
    name: "",
    image: "",
    namespace: "",
    pod: "",
    container: "",
    usage: UsageSample {
        cpu: None,
        memory: None,
        swap: None,
        io: None,
    },
    cgroup: None,
    network: None,
    of: None,
    labels: SharedLabels::NONE,
};

/// Bytes of the metrics of one object, in which each line has all labels.
const USUAL: usize = 6 << 10;

/// Renders the metrics.
#[must_use]
pub fn cadvisor_metrics(sample: &StatsSample) -> String {
    let mut objects = vec![MeasuredObject::of_node(&sample.node)];
    objects.extend(sample.node.pods.as_deref().map(MeasuredObject::of_all_pods));
    for pod in &sample.pods {
        objects.push(MeasuredObject::of_pod(pod));
        let containers = pod.containers.iter();
        objects.extend(containers.map(|container| MeasuredObject::of_container(pod, container)));
    }
    let objects: Vec<_> = objects
        .into_iter()
        .map(MeasuredObject::with_labels)
        .collect();
    let mut metrics = Exposition::with_capacity(objects.len() * USUAL);
    usage::write(&mut metrics, &objects);
    disk::write(&mut metrics, &objects, sample);
    machine::write(&mut metrics, sample);
    metrics.into_text()
}

/// Adds a value with the labels of an object and further ones.
fn add<const EXTRA: usize>(
    values: &mut MetricValues<'_>,
    object: &MeasuredObject<'_>,
    extra: [(&str, &str); EXTRA],
    value: f64,
    at: Option<Timestamp>,
) {
    values.add_to(&object.labels, &extra, value, at);
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests;
