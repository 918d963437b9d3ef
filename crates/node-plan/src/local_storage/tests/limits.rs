//! The limits of pods, and which of them are exceeded.

use super::*;

const SINGLE: FileSystemLayout = FileSystemLayout::Single;

fn message(pod: &Pod, usage: &PodUsage, layout: FileSystemLayout) -> Option<String> {
    let limits = StorageLimits::of(pod).expect("the pod has limits");
    let found = exceeded(&limits, usage, layout)?;
    Some(format!("{}: {}", found.kind.signal(), found.message))
}

#[test]
fn a_pod_goes_when_it_uses_more_than_a_limit_and_not_when_it_uses_all_of_it() {
    let volume = with_volume(limited(&[("a", None)]), Medium::Disk, "1Mi", MIB);
    let one = limited(&[("a", Some(("2Mi", 2 * MIB))), ("b", None)]);
    let two = limited(&[("a", Some(("1M", 1_000_000))), ("b", Some(("1Mi", MIB)))]);
    let both = with_volume(one.clone(), Medium::Disk, "1Mi", MIB);
    let of_volume =
        "emptydirfs.limit: Usage of EmptyDir volume \"data\" exceeds the limit \"1Mi\". ";
    let of_pod = "ephemeralpodfs.limit: Pod ephemeral local storage usage exceeds the total limit of \
                  containers 2Mi. ";
    let of_two = "ephemeralpodfs.limit: Pod ephemeral local storage usage exceeds the total limit of \
                  containers 2048576. ";
    let of_a = "ephemeralcontainerfs.limit: Container a exceeded its local ephemeral storage limit \
                \"1M\". ";
    let of_b = "ephemeralcontainerfs.limit: Container b exceeded its local ephemeral storage limit \
                \"1Mi\". ";
    let rows = [
        (&volume, usage(&[("a", 9 * MIB, 0)], MIB), None),
        (&volume, usage(&[], MIB + 1), Some(of_volume)),
        (&one, usage(&[("a", MIB, MIB)], 0), None),
        (&one, usage(&[("a", MIB, MIB + 1)], 0), Some(of_pod)),
        // The usage of the other container, and of volumes, counts for the pod.
        (
            &one,
            usage(&[("a", 0, 0), ("b", 0, MIB)], MIB + 1),
            Some(of_pod),
        ),
        (&both, usage(&[("a", 2 * MIB, 0)], MIB + 1), Some(of_volume)),
        (
            &two,
            usage(&[("a", 500_000, 500_000), ("b", MIB, 0)], 0),
            None,
        ),
        (&two, usage(&[("a", 500_001, 500_000)], 0), Some(of_a)),
        (&two, usage(&[("a", 0, 0), ("b", MIB, 1)], 0), Some(of_b)),
        (
            &two,
            usage(&[("a", 0, 0), ("b", 2 * MIB, 1)], 0),
            Some(of_two),
        ),
        // Not measured.
        (&both, PodUsage::default(), None),
    ];
    for (place, (pod, usage, expected)) in rows.into_iter().enumerate() {
        let found = message(pod, &usage, SINGLE);
        assert_eq!(found.as_deref(), expected, "row {place}");
    }
}

#[test]
fn where_images_have_a_disk_of_their_own_only_logs_count_for_a_container() {
    let pod = limited(&[("a", Some(("1Mi", MIB))), ("b", Some(("9Mi", 9 * MIB)))]);
    let used = usage(&[("a", 2 * MIB, 0)], 0);
    assert!(message(&pod, &used, SINGLE).is_some());
    for layout in [
        FileSystemLayout::ImageFileSystem,
        FileSystemLayout::SplitImageFileSystem,
    ] {
        assert_eq!(message(&pod, &used, layout), None);
        let logs = usage(&[("a", 0, 2 * MIB)], 0);
        assert!(message(&pod, &logs, layout).is_some());
        let whole = usage(&[("a", 11 * MIB, 0)], 0);
        let found = message(&pod, &whole, layout).unwrap();
        assert!(found.starts_with("ephemeralpodfs.limit"), "{found}");
    }
}

#[test]
fn init_containers_and_sidecars_have_limits_too() {
    let mut pod = limited(&[("a", Some(("1Mi", MIB)))]);
    let mut sidecar = pod.spec.containers[0].clone();
    sidecar.name = "side".into();
    sidecar.restart_policy = Some(RestartPolicy::Always);
    let mut init = pod.spec.containers[0].clone();
    init.name = "init".into();
    init.resources.limits.ephemeral_storage = Some(8 * MIB);
    pod.spec.init_containers = vec![sidecar, init];
    let found = message(&pod, &usage(&[("side", MIB + 1, 0)], 0), SINGLE);
    let expected = "ephemeralcontainerfs.limit: Container side exceeded its local ephemeral storage \
                    limit \"1Mi\". ";
    assert_eq!(found.as_deref(), Some(expected));
    // The init container beside the sidecar: 9 MiB.
    let found = message(&pod, &usage(&[], 9 * MIB), SINGLE);
    assert_eq!(found, None);
    let found = message(&pod, &usage(&[], 9 * MIB + 1), SINGLE).unwrap();
    assert!(found.ends_with("containers 9Mi. "), "{found}");
}

#[test]
fn pods_that_nobody_evicts_and_limits_of_others_are_not_watched() {
    assert_eq!(StorageLimits::of(&limited(&[("a", None)])), None);
    let memory = with_volume(limited(&[("a", None)]), Medium::Memory, "1Mi", MIB);
    assert_eq!(StorageLimits::of(&memory), None);
    let mut critical = limited(&[("a", Some(("1Mi", MIB)))]);
    assert!(StorageLimits::of(&critical).is_some());
    critical.spec.priority = 2_000_000_000;
    assert_eq!(StorageLimits::of(&critical), None);
    let mut of_a_file = limited(&[("a", Some(("1Mi", MIB)))]);
    of_a_file.source = PodSource::File;
    assert_eq!(StorageLimits::of(&of_a_file), None);
    // As in the kubelet, 0 is no limit of a volume, and one of the pod.
    let zero = with_volume(limited(&[("a", Some(("0", 0)))]), Medium::Disk, "0", 0);
    let found = message(&zero, &usage(&[("a", 1, 0)], 0), SINGLE).unwrap();
    assert!(found.starts_with("ephemeralpodfs.limit"), "{found}");
    assert_eq!(message(&zero, &usage(&[("a", 0, 0)], 0), SINGLE), None);
}

#[test]
fn the_least_headroom_counts() {
    let pod = with_volume(
        limited(&[("a", Some(("10Mi", 10 * MIB)))]),
        Medium::Disk,
        "4Mi",
        4 * MIB,
    );
    let limits = StorageLimits::of(&pod).unwrap();
    for (used, expected) in [
        (usage(&[], 0), 4 * MIB),
        (usage(&[("a", 7 * MIB, 0)], 0), 3 * MIB),
        (usage(&[("a", 4 * MIB, 0)], 3 * MIB), MIB),
        (usage(&[], 5 * MIB), 0),
    ] {
        assert_eq!(headroom(&limits, &used, SINGLE), expected);
    }
}
