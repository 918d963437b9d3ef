//! Tests of `disks`.

use jiff::Timestamp;

use super::*;

fn fs(second: i64, used: u64) -> FsSample {
    FsSample {
        at: Timestamp::from_second(second).unwrap(),
        available: Some(500),
        capacity: Some(1000),
        used: Some(used),
        inodes_free: Some(50),
        inodes: Some(100),
        inodes_used: Some(1),
    }
}

fn volume(name: &str, used: u64, is_ephemeral: bool) -> VolumeSample {
    VolumeSample {
        name: name.into(),
        fs: fs(4, used),
        is_ephemeral,
    }
}

#[test]
fn ephemeral_storage_is_all_that_goes_with_the_pod() {
    let readings = DiskReadings {
        root: Some(fs(1, 900)),
        pod_files: HashMap::from([("u1".into(), (32, 2))]),
        ..DiskReadings::default()
    };
    let measured = ContainerSample {
        rootfs: Some(fs(2, 1)),
        logs: Some(fs(3, 2)),
        ..ContainerSample::default()
    };
    // Its writable layer is not known.
    let logs_only = ContainerSample {
        logs: Some(fs(3, 4)),
        ..ContainerSample::default()
    };
    let containers = [measured, logs_only];
    let volumes = [volume("data", 8, true), volume("memory", 64, false)];
    let found = readings.ephemeral_storage("u1", &containers, &volumes);
    let expected = FsSample {
        inodes_used: Some(6),
        ..fs(4, 1 + 2 + 4 + 8 + 32)
    };
    assert_eq!(found, Some(expected));
    let unknown = DiskReadings::default();
    assert_eq!(unknown.ephemeral_storage("u1", &containers, &volumes), None);
}
