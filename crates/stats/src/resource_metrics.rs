//! `/metrics/resource`: what a metrics server reads. Source of the names, labels and times:
//! `pkg/kubelet/metrics/collectors/resource_metrics.go` of Kubernetes 1.36.

use jiff::Timestamp;

use crate::{
    exposition::{
        Exposition,
        MetricKind::{Counter, Gauge},
        MetricValues,
    },
    sample::{ContainerSample, CpuSample, MemorySample, PodSample, StatsSample, SwapSample},
};

/// A number and the time of its reading.
type TimedValue = (f64, Option<Timestamp>);

/// Renders the metrics.
#[must_use]
pub fn resource_metrics(sample: &StatsSample) -> String {
    let mut metrics = Exposition::default();
    of_containers(&mut metrics, &sample.pods);
    of_node(&mut metrics, sample);
    of_pods(&mut metrics, &sample.pods);
    let error = if sample.problems.is_empty() { 0.0 } else { 1.0 };
    for name in ["resource_scrape_error", "scrape_error"] {
        let help = "1 if a number could not be read, else 0";
        metrics.metric(name, Gauge, help, |values| values.add(&[], error, None));
    }
    metrics.into_text()
}

fn of_containers(metrics: &mut Exposition, pods: &[PodSample]) {
    let each = |values: &mut MetricValues<'_>,
                number: fn(&ContainerSample) -> Option<TimedValue>| {
        for pod in pods {
            for container in &pod.containers {
                let labels = [
                    ("container", &*container.name),
                    ("namespace", &*pod.namespace),
                    ("pod", &*pod.name),
                ];
                if let Some((value, at)) = number(container) {
                    values.add(&labels, value, at);
                }
            }
        }
    };
    let name = "container_cpu_usage_seconds_total";
    metrics.metric(name, Counter, "CPU time of the container", |values| {
        each(values, |container| {
            container.usage.cpu.as_ref().map(cpu_seconds)
        });
    });
    let name = "container_memory_working_set_bytes";
    metrics.metric(name, Gauge, "Working set of the container", |values| {
        each(values, |container| {
            working_set(container.usage.memory.as_ref())
        });
    });
    let name = "container_start_time_seconds";
    let help = "Start time of the container, in seconds since 1970";
    metrics.metric(name, Gauge, help, |values| {
        each(values, |container| {
            let nanos = container.started_at.as_nanosecond();
            (nanos > 0).then(|| (nanos as f64 / 1e9, None))
        });
    });
    let name = "container_swap_limit_bytes";
    metrics.metric(
        name,
        Gauge,
        "Limit of swap space of the container",
        |values| {
            each(values, |container| {
                let swap = container.usage.swap?;
                let limit = swap.available?.saturating_add(swap.usage.unwrap_or(0));
                Some((limit as f64, Some(swap.at)))
            });
        },
    );
    let name = "container_swap_usage_bytes";
    metrics.metric(
        name,
        Gauge,
        "Swap space that the container uses",
        |values| {
            each(values, |container| {
                swap_usage(container.usage.swap.as_ref())
            });
        },
    );
}

fn of_node(metrics: &mut Exposition, sample: &StatsSample) {
    let one = |values: &mut MetricValues<'_>, number: Option<TimedValue>| {
        if let Some((value, at)) = number {
            values.add(&[], value, at);
        }
    };
    let node = &sample.node;
    let name = "node_cpu_usage_seconds_total";
    metrics.metric(name, Counter, "CPU time of the node", |values| {
        one(values, node.usage.cpu.as_ref().map(cpu_seconds));
    });
    let name = "node_memory_working_set_bytes";
    metrics.metric(name, Gauge, "Working set of the node", |values| {
        one(values, working_set(node.usage.memory.as_ref()));
    });
    let name = "node_swap_usage_bytes";
    metrics.metric(name, Gauge, "Swap space that the node uses", |values| {
        one(values, swap_usage(node.usage.swap.as_ref()));
    });
}

fn of_pods(metrics: &mut Exposition, pods: &[PodSample]) {
    let each = |values: &mut MetricValues<'_>, number: fn(&PodSample) -> Option<TimedValue>| {
        for pod in pods {
            let labels = [("namespace", &*pod.namespace), ("pod", &*pod.name)];
            if let Some((value, at)) = number(pod) {
                values.add(&labels, value, at);
            }
        }
    };
    let name = "pod_cpu_usage_seconds_total";
    metrics.metric(name, Counter, "CPU time of the pod", |values| {
        each(values, |pod| pod.usage.cpu.as_ref().map(cpu_seconds));
    });
    let name = "pod_memory_working_set_bytes";
    metrics.metric(name, Gauge, "Working set of the pod", |values| {
        each(values, |pod| working_set(pod.usage.memory.as_ref()));
    });
    let name = "pod_swap_usage_bytes";
    metrics.metric(name, Gauge, "Swap space that the pod uses", |values| {
        each(values, |pod| swap_usage(pod.usage.swap.as_ref()));
    });
}

fn cpu_seconds(cpu: &CpuSample) -> TimedValue {
    (cpu.usage_ns as f64 / 1e9, Some(cpu.at))
}

fn working_set(memory: Option<&MemorySample>) -> Option<TimedValue> {
    let memory = memory?;
    Some((memory.working_set? as f64, Some(memory.at)))
}

fn swap_usage(swap: Option<&SwapSample>) -> Option<TimedValue> {
    let swap = swap?;
    Some((swap.usage? as f64, Some(swap.at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{NodeSample, UsageSample};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    fn sample() -> StatsSample {
        let cpu = |usage_ns| {
            Some(CpuSample {
                at: at(7000),
                usage_ns,
                ..CpuSample::default()
            })
        };
        let memory = |bytes| {
            Some(MemorySample {
                at: at(7001),
                working_set: Some(bytes),
                ..MemorySample::default()
            })
        };
        let swap = |usage, available| {
            Some(SwapSample {
                at: at(7002),
                usage: Some(usage),
                available,
            })
        };
        StatsSample {
            node: NodeSample {
                usage: UsageSample {
                    cpu: cpu(90_500_000_000),
                    memory: memory(4096),
                    swap: swap(0, Some(5)),
                    ..UsageSample::default()
                },
                ..NodeSample::default()
            },
            pods: vec![PodSample {
                namespace: "default".into(),
                name: "web".into(),
                uid: "u1".into(),
                started_at: at(1000),
                usage: UsageSample {
                    cpu: cpu(2_000_000_000),
                    memory: memory(1024),
                    swap: swap(2, None),
                    ..UsageSample::default()
                },
                containers: vec![
                    ContainerSample {
                        name: "app".into(),
                        id: "c1".into(),
                        started_at: at(1500),
                        usage: UsageSample {
                            cpu: cpu(1_250_000_000),
                            memory: memory(512),
                            swap: swap(2, Some(8)),
                            ..UsageSample::default()
                        },
                        ..ContainerSample::default()
                    },
                    ContainerSample {
                        name: "side".into(),
                        id: "c2".into(),
                        ..ContainerSample::default()
                    },
                ],
                ..PodSample::default()
            }],
            ..StatsSample::default()
        }
    }

    #[test]
    fn each_number_has_the_kubelets_name_labels_and_time() {
        let text = resource_metrics(&sample());
        let of = r#"{container="app",namespace="default",pod="web"}"#;
        let pod = r#"{namespace="default",pod="web"}"#;
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            format!("container_cpu_usage_seconds_total{of} 1.25 7000"),
            format!("container_memory_working_set_bytes{of} 512 7001"),
            format!("container_start_time_seconds{of} 1.5"),
            format!("container_swap_limit_bytes{of} 10 7002"),
            format!("container_swap_usage_bytes{of} 2 7002"),
            "node_cpu_usage_seconds_total 90.5 7000".to_owned(),
            "node_memory_working_set_bytes 4096 7001".to_owned(),
            "node_swap_usage_bytes 0 7002".to_owned(),
            format!("pod_cpu_usage_seconds_total{pod} 2 7000"),
            format!("pod_memory_working_set_bytes{pod} 1024 7001"),
            format!("pod_swap_usage_bytes{pod} 2 7002"),
            "resource_scrape_error 0".to_owned(),
            "scrape_error 0".to_owned(),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn missing_numbers_are_an_error_of_the_scrape() {
        let text = resource_metrics(&StatsSample {
            problems: vec!["the runtime did not respond".to_owned()],
            ..StatsSample::default()
        });
        assert!(text.contains("\nresource_scrape_error 1\n"), "{text}");
        assert!(!text.contains("node_cpu"), "{text}");
    }
}
