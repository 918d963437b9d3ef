//! The space of container logs, for `/metrics` of the kubelet's port. Source: `pkg/kubelet/metrics/collectors/log_metrics.go`
//! of Kubernetes 1.36.

use crate::{
    exposition::{Exposition, MetricKind::Gauge},
    sample::StatsSample,
};

/// Renders the metric; empty without logs.
#[must_use]
pub fn log_metrics(sample: &StatsSample) -> String {
    let mut metrics = Exposition::default();
    let name = "kubelet_container_log_filesystem_used_bytes";
    let help = "[ALPHA] Bytes used by the container's logs on the filesystem.";
    metrics.metric(name, Gauge, help, |values| {
        for pod in &sample.pods {
            for container in &pod.containers {
                let Some(used) = container.logs.as_ref().and_then(|logs| logs.used) else {
                    continue;
                };
                let labels = [
                    ("container", &*container.name),
                    ("namespace", &*pod.namespace),
                    ("pod", &*pod.name),
                    ("uid", &*pod.uid),
                ];
                values.add(&labels, used as f64, None);
            }
        }
    });
    metrics.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{ContainerSample, FsSample, PodSample};

    #[test]
    fn each_container_with_a_log_has_a_line() {
        let container = |name: &str, used| ContainerSample {
            name: name.into(),
            logs: Some(FsSample {
                used,
                ..FsSample::default()
            }),
            ..ContainerSample::default()
        };
        let pod = PodSample {
            namespace: "default".into(),
            name: "web".into(),
            uid: "u-1".into(),
            containers: vec![container("a", Some(4096)), container("b", None)],
            ..PodSample::default()
        };
        let mut sample = StatsSample::default();
        assert_eq!(log_metrics(&sample), "");
        sample.pods.push(pod);
        let name = "kubelet_container_log_filesystem_used_bytes";
        let line = "container=\"a\",namespace=\"default\",pod=\"web\",uid=\"u-1\"";
        let text = log_metrics(&sample);
        let (_, lines) = text.split_once("gauge\n").expect("a type");
        assert_eq!(lines, format!("{name}{{{line}}} 4096\n"));
    }
}
