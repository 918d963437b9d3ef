//! The pod that goes.

use rubelet_api::resources::Resources;

use super::*;

/// The name of the first pod to evict.
fn first(
    shortage: &Shortage,
    layout: FileSystemLayout,
    pods: &[(Pod, Option<PodUsage>)],
) -> String {
    let candidates: Vec<_> = pods
        .iter()
        .map(|(pod, usage)| EvictionCandidate {
            pod,
            usage: usage.as_ref(),
            is_leaving: false,
        })
        .collect();
    match choose(&EvictionPolicy::default(), layout, shortage, &candidates) {
        EvictionChoice::Evict(eviction) => eviction.uid.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn for_memory_the_usage_over_requests_counts_then_priority_then_the_excess() {
    let short = shortage("memory.available", "100Mi", 50 * MIB);
    let single = FileSystemLayout::Single;
    let used = |mib: u64| Some(uses_memory(mib * MIB));
    let small = (api_pod("small", 0, 0), used(1));
    let within = (api_pod("within", -10, 500 * MIB), used(500));
    let important = (api_pod("important", 10, 0), used(400));
    let large = (api_pod("large", 0, 100 * MIB), used(150));
    let larger = (api_pod("larger", 0, 400 * MIB), used(451));
    let unknown = (api_pod("unknown", 10, 0), None);
    let rows = [
        (vec![within.clone()], "within"),
        (vec![within.clone(), small.clone()], "small"),
        (vec![small.clone(), important.clone()], "small"),
        (vec![small.clone(), large.clone()], "large"),
        (vec![small.clone(), large.clone(), larger.clone()], "larger"),
        (vec![larger, important, unknown, within], "unknown"),
        (
            vec![small.clone(), (api_pod("also", 0, 0), used(1))],
            "also",
        ),
        (vec![], "NoCandidate"),
    ];
    for (pods, expected) in rows {
        assert_eq!(first(&short, single, &pods), expected);
    }
}

#[test]
fn for_processes_priority_counts_and_then_their_number() {
    let short = shortage("pid.available", "1k", 50);
    let with = |pids| {
        Some(PodUsage {
            pids,
            ..PodUsage::default()
        })
    };
    let rows = [
        (
            vec![
                (api_pod("a", 0, 0), with(10)),
                (api_pod("b", 1, 0), with(900)),
            ],
            "a",
        ),
        (
            vec![
                (api_pod("a", 1, 0), with(10)),
                (api_pod("b", 1, 0), with(900)),
            ],
            "b",
        ),
        (
            vec![(api_pod("a", 0, 0), None), (api_pod("b", 0, 0), with(900))],
            "a",
        ),
    ];
    for (pods, expected) in rows {
        assert_eq!(first(&short, FileSystemLayout::Single, &pods), expected);
    }
}

#[test]
fn for_disks_only_what_is_on_that_file_system_counts() {
    use FileSystemLayout::{ImageFileSystem, Single, SplitImageFileSystem};
    let usage = |layer: u64, logs: u64, volumes: u64| {
        let disk = |bytes| DiskUsage {
            bytes,
            inodes: 1000 - bytes,
        };
        Some(PodUsage {
            volumes: vec![VolumeUsage {
                name: "data".into(),
                usage: disk(volumes),
            }],
            containers: vec![ContainerUsage {
                name: "a".into(),
                memory: None,
                writable_layer: Some(disk(layer)),
                logs: Some(disk(logs)),
            }],
            ..PodUsage::default()
        })
    };
    let pods = [
        (api_pod("layer", 0, 0), usage(100, 0, 0)),
        (api_pod("logs", 0, 0), usage(0, 90, 0)),
        (api_pod("spread", 0, 0), usage(50, 40, 40)),
    ];
    for (layout, signal, expected) in [
        (Single, "nodefs.available", "spread"),
        (Single, "imagefs.available", "spread"),
        (Single, "nodefs.inodesFree", "logs"),
        (ImageFileSystem, "nodefs.available", "logs"),
        (ImageFileSystem, "imagefs.available", "layer"),
        (ImageFileSystem, "imagefs.inodesFree", "logs"),
        (SplitImageFileSystem, "nodefs.available", "spread"),
        // Nothing of a pod is there: the names decide.
        (SplitImageFileSystem, "imagefs.available", "layer"),
    ] {
        let short = shortage(signal, "1Gi", 50);
        assert_eq!(
            first(&short, layout, &pods),
            expected,
            "{layout:?} {signal}"
        );
    }
}

#[test]
fn critical_pods_stay_whatever_they_use() {
    let short = shortage("memory.available", "100Mi", 50 * MIB);
    let mut from_file = api_pod("static", 0, 0);
    from_file.source = PodSource::File;
    let critical = api_pod("critical", 2_000_000_000, 0);
    let almost = api_pod("almost", 1_999_999_999, 500 * MIB);
    let used = |mib: u64| Some(uses_memory(mib * MIB));
    let single = FileSystemLayout::Single;
    let stay = [(from_file, used(900)), (critical, None)];
    assert_eq!(first(&short, single, &stay), "NoCandidate");
    let [one, two] = stay;
    assert_eq!(
        first(&short, single, &[one, two, (almost, used(1))]),
        "almost"
    );
}

#[test]
fn a_pod_that_terminates_already_is_waited_for() {
    let short = shortage("memory.available", "100Mi", 50 * MIB);
    let (large, small) = (api_pod("large", 0, 0), api_pod("small", 0, 0));
    let (much, little) = (uses_memory(2), uses_memory(1));
    let candidates = |large_leaves| {
        [(&large, &much, large_leaves), (&small, &little, true)].map(|(pod, usage, is_leaving)| {
            EvictionCandidate {
                pod,
                usage: Some(usage),
                is_leaving,
            }
        })
    };
    let chosen = |large_leaves| {
        let policy = EvictionPolicy::default();
        choose(
            &policy,
            FileSystemLayout::Single,
            &short,
            &candidates(large_leaves),
        )
    };
    assert_eq!(chosen(true), EvictionChoice::AwaitEnd("large".into()));
    assert!(matches!(chosen(false), EvictionChoice::Evict(found) if found.uid == "large".into()));
}

/// Message, annotations and grace period of a pod that is evicted for a shortage.
fn eviction(short: &Shortage, usage: Option<&PodUsage>) -> PodEviction {
    eviction_of(api_pod("web", 0, 64 * MIB), short, usage)
}

fn eviction_of(mut pod: Pod, short: &Shortage, usage: Option<&PodUsage>) -> PodEviction {
    pod.spec.init_containers = vec![container("init", Default::default(), Default::default())];
    let candidate = EvictionCandidate {
        pod: &pod,
        usage,
        is_leaving: false,
    };
    let policy = EvictionPolicy {
        max_pod_grace: Duration::from_secs(20),
        ..EvictionPolicy::default()
    };
    match choose(&policy, FileSystemLayout::Single, short, &[candidate]) {
        EvictionChoice::Evict(eviction) => eviction,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_and_annotations_are_the_kubelets() {
    let of = |name: &str, memory: u64, layer: u64| ContainerUsage {
        name: name.into(),
        memory: Some(memory),
        writable_layer: Some(DiskUsage {
            bytes: layer,
            inodes: 1,
        }),
        logs: Some(DiskUsage {
            bytes: 1024,
            inodes: 1,
        }),
    };
    let usage = PodUsage {
        containers: vec![
            of("a", 64 * MIB, 3 * MIB),
            of("init", 5 * MIB, 0),
            of("debugger", 900 * MIB, 0),
        ],
        ..uses_memory(969 * MIB)
    };
    let memory = eviction(
        &shortage("memory.available", "0.5Gi", 102_404 << 10),
        Some(&usage),
    );
    assert_eq!(
        memory.message,
        "The node was low on resource: memory. Threshold quantity: 512Mi, available: 102404Ki. \
         Container init was using 5Mi, request is 0, has larger consumption of memory. "
    );
    assert_eq!(
        memory.annotations,
        [
            ("offending_containers", "init".to_owned()),
            ("offending_containers_usage", "5Mi".to_owned()),
            ("starved_resource", "memory".to_owned()),
        ]
    );
    let disk = eviction(&shortage("nodefs.available", "1G", 1000), Some(&usage));
    assert_eq!(
        disk.message,
        "The node was low on resource: ephemeral-storage. Threshold quantity: 1G, available: 1000. \
         Container a was using 3073Ki, request is 0, has larger consumption of ephemeral-storage. \
         Container init was using 1Ki, request is 0, has larger consumption of ephemeral-storage. "
    );
    let pids = eviction(&shortage("pid.available", "5k", 2000), None);
    assert_eq!(
        pids.message,
        "The node was low on resource: pids. Threshold quantity: 5k, available: 2k. "
    );
    assert!(pids.annotations.is_empty());
    let share = eviction(&shortage("nodefs.inodesFree", "50%", 2000), None);
    assert_eq!(
        share.message,
        "The node was low on resource: inodes. Threshold quantity: 500Mi, available: 2k. "
    );
    assert_eq!(
        threshold_met(StarvedResource::EphemeralStorage),
        "Attempting to reclaim ephemeral-storage"
    );
}

#[test]
fn a_hard_eviction_takes_a_second_and_a_soft_one_what_is_allowed() {
    let seconds = Duration::from_secs;
    let soft = EvictionThreshold {
        grace: seconds(60),
        ..shortage("memory.available", "1", 0).threshold
    };
    let hard = EvictionThreshold {
        grace: Duration::ZERO,
        ..soft
    };
    for (threshold, longest, own, expected) in [
        (hard, 20, 30, 1),
        (soft, 20, 30, 20),
        (soft, 20, 5, 5),
        (soft, 0, 30, 1),
        (soft, 20, 0, 1),
    ] {
        let policy = EvictionPolicy {
            max_pod_grace: seconds(longest),
            ..EvictionPolicy::default()
        };
        let found = policy.pod_grace(&threshold, seconds(own));
        assert_eq!(found, seconds(expected), "{longest} {own}");
    }
}

#[test]
fn the_message_names_what_the_pod_itself_requests() {
    let mut pod = api_pod("web", 0, 0);
    pod.spec.resources = Some(Resources {
        requests: amounts(100, 64 * MIB),
        ..Resources::default()
    });
    let usage = uses_memory(100 * MIB);
    let memory = shortage("memory.available", "100Mi", 50 * MIB);
    let evicted = eviction_of(pod, &memory, Some(&usage));
    let expected = "Pod web was using 100Mi, request is 64Mi, has larger consumption of memory. ";
    assert!(evicted.message.ends_with(expected), "{}", evicted.message);
    let expected = [
        ("offending_pod", "web".to_owned()),
        ("offending_pod_usage", "100Mi".to_owned()),
    ];
    assert_eq!(evicted.annotations[..2], expected);
}
