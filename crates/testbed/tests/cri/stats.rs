//! ContainerStats, ListContainerStats, PodSandboxStats, ListPodSandboxStats, metrics, ImageFsInfo.

use std::collections::BTreeMap;

use anyhow::Result;
use rubelet_cri::{CriResult, ImageService, RuntimeService, v1};
use rubelet_testbed::wait;

use crate::subject::{Subject, TIMEOUT, not_found, stop};

fn stats(subject: &Subject, id: &str) -> CriResult<v1::ContainerStats> {
    let request = v1::ContainerStatsRequest {
        container_id: id.to_owned(),
    };
    let answer = subject.ask(subject.client().container_stats(request))?;
    Ok(answer.stats.unwrap_or_default())
}

#[test]
fn stats_of_a_container_are_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("uses")?;
    let script = "head -c 5000000 /dev/urandom > /tmp/big; sync; echo ready; exec sleep 1000";
    let id = sandbox.start(sandbox.script("main", script))?;
    sandbox.wait_log("main", "ready")?;
    let found = wait::until("the written bytes are counted", TIMEOUT, || {
        let found = stats(&subject, &id)?;
        let used = found
            .writable_layer
            .as_ref()
            .and_then(|layer| layer.used_bytes);
        Ok((used.unwrap_or_default().value > 4_500_000).then_some(found))
    })?;
    let attributes = found.attributes.clone().unwrap_or_default();
    assert_eq!(attributes.id, id);
    assert_eq!(attributes.metadata.unwrap_or_default().name, "main");
    assert_eq!(attributes.labels["io.kubernetes.pod.name"], sandbox.name());
    let cpu = found.cpu.unwrap_or_default();
    assert!(cpu.timestamp > 0);
    assert!(cpu.usage_core_nano_seconds.unwrap_or_default().value > 0);
    let memory = found.memory.unwrap_or_default();
    assert!(memory.working_set_bytes.unwrap_or_default().value > 0);
    let layer = found.writable_layer.unwrap_or_default();
    assert!(layer.inodes_used.unwrap_or_default().value >= 1);
    assert!(!layer.fs_id.unwrap_or_default().mountpoint.is_empty());
    Ok(())
}

#[test]
fn lists_of_stats_are_filtered() -> Result<()> {
    let subject = Subject::shared()?;
    let (one, two) = (subject.sandbox("list")?, subject.sandbox("list")?);
    let (first, second) = (one.waiting("main")?, two.waiting("main")?);
    let list = |filter: v1::ContainerStatsFilter| -> Result<Vec<String>> {
        let request = v1::ListContainerStatsRequest {
            filter: Some(filter),
        };
        let answer = subject.ask(subject.client().list_container_stats(request))?;
        let ids = answer.stats.into_iter();
        Ok(ids
            .map(|one| one.attributes.unwrap_or_default().id)
            .collect())
    };
    let by_sandbox = v1::ContainerStatsFilter {
        pod_sandbox_id: one.id.clone(),
        ..Default::default()
    };
    assert_eq!(list(by_sandbox)?, std::slice::from_ref(&first));
    let by_id = v1::ContainerStatsFilter {
        id: second.clone(),
        ..Default::default()
    };
    assert_eq!(list(by_id)?, std::slice::from_ref(&second));
    let by_label = v1::ContainerStatsFilter {
        label_selector: BTreeMap::from([("io.kubernetes.pod.name".into(), two.name())]),
        ..Default::default()
    };
    assert_eq!(list(by_label)?, [second]);
    Ok(())
}

#[test]
fn exited_and_missing_containers_use_nothing() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("gone")?;
    not_found(stats(&subject, &"a".repeat(64)));
    let id = sandbox.waiting("main")?;
    subject.ask(stop(subject.client(), &id, 10))?;
    let request = v1::ListContainerStatsRequest {
        filter: Some(v1::ContainerStatsFilter {
            id: id.clone(),
            ..Default::default()
        }),
    };
    let listed = subject.ask(subject.client().list_container_stats(request))?;
    // An exited container may be listed, but not with increasing CPU time.
    assert!(listed.stats.len() <= 1, "{listed:#?}");
    Ok(())
}

#[test]
fn stats_of_a_pod_are_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("pod")?;
    let id = sandbox.waiting("main")?;
    let of = |sandbox: &str| {
        subject.ask(
            subject
                .client()
                .pod_sandbox_stats(v1::PodSandboxStatsRequest {
                    pod_sandbox_id: sandbox.to_owned(),
                }),
        )
    };
    let found = of(&sandbox.id)?.stats.unwrap_or_default();
    let attributes = found.attributes.unwrap_or_default();
    assert_eq!(attributes.id, sandbox.id);
    assert_eq!(attributes.metadata, sandbox.config.metadata);
    let linux = found.linux.unwrap_or_default();
    let containers: Vec<_> = linux
        .containers
        .into_iter()
        .filter_map(|one| one.attributes)
        .collect();
    assert_eq!(
        containers.iter().map(|one| &one.id).collect::<Vec<_>>(),
        [&id]
    );
    let network = linux.network.unwrap_or_default();
    assert_eq!(network.default_interface.unwrap_or_default().name, "eth0");
    assert!(
        linux
            .memory
            .unwrap_or_default()
            .working_set_bytes
            .unwrap_or_default()
            .value
            > 0
    );
    assert!(
        linux
            .process
            .unwrap_or_default()
            .process_count
            .unwrap_or_default()
            .value
            >= 1
    );
    not_found(of(&"9".repeat(64)));

    let request = v1::ListPodSandboxStatsRequest {
        filter: Some(v1::PodSandboxStatsFilter {
            id: sandbox.id.clone(),
            ..Default::default()
        }),
    };
    let listed = subject.ask(subject.client().list_pod_sandbox_stats(request))?;
    let ids: Vec<_> = listed
        .stats
        .into_iter()
        .filter_map(|one| one.attributes)
        .map(|one| one.id)
        .collect();
    assert_eq!(ids, std::slice::from_ref(&sandbox.id));
    Ok(())
}

#[test]
fn metrics_have_descriptors_and_values() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("metrics")?;
    sandbox.waiting("main")?;
    let client = subject.client();
    let described = subject.ask(client.list_metric_descriptors(Default::default()));
    let told = subject.ask(client.list_pod_sandbox_metrics(Default::default()));
    if !subject.is_embedded() {
        subject.skip("containerd before 2.2 has neither");
        return Ok(());
    }
    let described = described?.descriptors;
    let told = told?.pod_metrics;
    let own = told
        .iter()
        .find(|one| one.pod_sandbox_id == sandbox.id)
        .unwrap();
    let [container] = own.container_metrics.as_slice() else {
        panic!("one container: {own:#?}");
    };
    for metric in own.metrics.iter().chain(&container.metrics) {
        let descriptor = described.iter().find(|one| one.name == metric.name);
        let keys = descriptor.map(|one| one.label_keys.len());
        let values = metric.label_values.len();
        assert_eq!(keys, Some(values), "labels of {}", metric.name);
    }
    let number = |name: &str| {
        let metric = container.metrics.iter().find(|one| one.name == name);
        metric.and_then(|one| Some(one.value?.value))
    };
    let some = |name: &str| assert!(number(name) > Some(0), "{name}: {:?}", number(name));
    // Metrics that a kubelet serves for each container, with any runtime.
    for name in [
        "container_file_descriptors",
        "container_fs_inodes_total",
        "container_fs_limit_bytes",
        "container_memory_failures_total",
        "container_memory_max_usage_bytes",
        "container_memory_working_set_bytes",
        "container_processes",
        "container_spec_cpu_period",
        "container_spec_cpu_shares",
        "container_threads",
    ] {
        some(name);
    }
    for name in [
        "container_cpu_usage_seconds_total",
        "container_memory_kernel_usage",
        "container_memory_swap",
        "container_sockets",
        "container_spec_memory_swap_limit_bytes",
        "container_threads_max",
    ] {
        assert!(number(name).is_some(), "{name} is missing");
    }
    assert!(number("container_start_time_seconds") <= number("container_last_seen"));
    some("container_start_time_seconds");
    let packets = "container_network_receive_packets_total";
    assert!(own.metrics.iter().any(|one| one.name == packets));
    Ok(())
}

#[test]
fn the_image_file_system_is_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let answer = subject.ask(subject.client().image_fs_info(Default::default()))?;
    let [images] = answer.image_filesystems.as_slice() else {
        panic!("one file system of images: {answer:#?}");
    };
    let place = images.fs_id.clone().unwrap_or_default().mountpoint;
    assert!(std::path::Path::new(&place).is_dir(), "{place}");
    assert!(images.used_bytes.unwrap_or_default().value > 1_000_000);
    assert!(images.inodes_used.unwrap_or_default().value > 100);
    assert!(images.timestamp > 0);
    Ok(())
}
