//! Block devices and file systems of objects.

use rubelet_host::cgroup::IoStats;

use super::{MeasuredObject, add};
use crate::{
    exposition::{
        Exposition,
        MetricKind::{Counter, Gauge},
    },
    sample::{FsSample, StatsSample},
};

/// A metric of a block device.
type DeviceMetric = (&'static str, &'static str, fn(&IoStats) -> u64);

/// A metric of a file system.
type FsMetric = (&'static str, &'static str, fn(&FsSample) -> Option<u64>);

const DEVICES: &[DeviceMetric] = &[
    (
        "container_fs_reads_bytes_total",
        "Bytes read from disks",
        |io| io.read_bytes,
    ),
    ("container_fs_reads_total", "Reads from disks", |io| {
        io.reads
    }),
    (
        "container_fs_writes_bytes_total",
        "Bytes written to disks",
        |io| io.write_bytes,
    ),
    ("container_fs_writes_total", "Writes to disks", |io| {
        io.writes
    }),
];

/// Of the writable layer: its usage, and the size of its file system.
const LAYERS: &[FsMetric] = &[
    (
        "container_fs_inodes_free",
        "Free inodes of the file system",
        |fs| fs.inodes_free,
    ),
    (
        "container_fs_inodes_total",
        "Inodes of the file system",
        |fs| fs.inodes,
    ),
    (
        "container_fs_limit_bytes",
        "Size of the file system",
        |fs| fs.capacity,
    ),
    (
        "container_fs_usage_bytes",
        "Size of the writable layer",
        |fs| fs.used,
    ),
];

/// Writes the metrics.
pub(super) fn write(
    metrics: &mut Exposition,
    objects: &[MeasuredObject<'_>],
    sample: &StatsSample,
) {
    for (name, help, number) in DEVICES {
        metrics.metric(name, Counter, help, |values| {
            each_device(objects, sample, |object, device, io| {
                let at = object.cgroup.map(|cgroup| cgroup.at);
                add(values, object, [("device", device)], number(io) as f64, at);
            });
        });
    }
    let name = "container_blkio_device_usage_total";
    metrics.metric(
        name,
        Counter,
        "Bytes read from and written to disks",
        |values| {
            each_device(objects, sample, |object, device, io| {
                let at = object.cgroup.map(|cgroup| cgroup.at);
                let (major, minor) = (io.major.to_string(), io.minor.to_string());
                for (operation, bytes) in [("Read", io.read_bytes), ("Write", io.write_bytes)] {
                    let labels = [
                        ("device", device),
                        ("major", &*major),
                        ("minor", &*minor),
                        ("operation", operation),
                    ];
                    add(values, object, labels, bytes as f64, at);
                }
            });
        },
    );
    let device = sample.node.layers_device.as_deref().unwrap_or_default();
    for (name, help, number) in LAYERS {
        metrics.metric(name, Gauge, help, |values| {
            for object in objects {
                let Some(layer) = object.of.and_then(|of| of.rootfs) else {
                    continue;
                };
                if let Some(value) = number(&layer) {
                    let labels = [("device", device)];
                    add(values, object, labels, value as f64, Some(layer.at));
                }
            }
        });
    }
}

/// Calls `each` with the name and the numbers of each block device of each object.
fn each_device(
    objects: &[MeasuredObject<'_>],
    sample: &StatsSample,
    mut each: impl FnMut(&MeasuredObject<'_>, &str, &IoStats),
) {
    for object in objects {
        for io in object.stats().iter().flat_map(|stats| &stats.io) {
            match sample.devices.get(&(io.major, io.minor)) {
                Some(name) => each(object, name, io),
                None => each(object, &format!("{}:{}", io.major, io.minor), io),
            }
        }
    }
}
