//! Pods that start while large volumes of other pods are filled from their image.

use std::fs::{File, read_dir};
use std::io::{Read as _, copy, repeat};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use rubelet_testbed::manifest::{pod, waiting, with};
use rubelet_testbed::{Embedded, Node, clock, disk, images, status};
use serde_json::json;

use super::super::report::Results;
use super::super::{Request, progress, quantile};
use super::environment;

/// Pods with a large volume.
const COPIES: u64 = 16;
/// Size of each of these volumes on a disk with enough space.
const SIZE: u64 = 2 << 30;
/// Pods that start meanwhile, one after the other.
const STARTS: usize = 100;

/// Measures `other_pods_start_ms_p99_beside_copies`: from the manifest of a pod until its container
/// runs, while 16 pods of an image with 2 GiB below a declared VOLUME are being created. On a disk
/// with less than twice the space for that, the volumes are smaller.
pub(in super::super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let environment = environment(request)?;
    let free = disk::free(environment.scratch().dir())?;
    let size = SIZE.min(free / 2 / (COPIES + 1));
    progress(&format!("{COPIES} volumes of {} MiB", size >> 20));
    fill_image(&environment, size)?;
    let node = Node::start_on(environment, |builder| builder.program(&request.program))?;
    for number in 0..COPIES {
        let main = with(waiting("main"), &json!({ "image": images::VOLUMES }));
        node.apply(&pod(&large(number), &json!({ "containers": [main] })))?;
    }
    // The first pods of a runtime are slower.
    started(&node, "warm")?;
    let mut times = Vec::new();
    for number in 0..STARTS {
        times.push(started(&node, &format!("other-{number}"))?);
    }
    let last = node.pod(&large(COPIES - 1))?.unwrap_or_default();
    let others = (0..COPIES).filter_map(|number| node.pod(&large(number)).ok().flatten());
    let filled = others.filter(|pod| status::runs(pod, "main")).count();
    ensure!(
        u64::try_from(filled)? < COPIES,
        "all volumes were filled before the last of {STARTS} pods started: {last:#}"
    );
    times.sort_by(f64::total_cmp);
    let late = quantile(&times, 0.99);
    results.add("other_pods_start_ms_p99_beside_copies", late);
    Ok(())
}

fn large(number: u64) -> String {
    format!("large-{number}")
}

/// Adds a file of this size to the declared volume of the image. It is written where the layer is
/// unpacked: an archive with it would have to be built and loaded first.
fn fill_image(environment: &Embedded, size: u64) -> Result<()> {
    let volume = volume_of_image(environment)?;
    let mut file = File::create(volume.join("large"))?;
    copy(&mut repeat(b'x').take(size), &mut file).context("cannot fill the image's volume")?;
    Ok(file.sync_all()?)
}

/// The directory `/data` of the one layer that the images have.
fn volume_of_image(environment: &Embedded) -> Result<PathBuf> {
    let layers = environment.root_dir().join("layers");
    let entries = read_dir(&layers)?.filter_map(Result::ok);
    let mut volumes = entries.map(|entry| entry.path().join("fs/data"));
    let found = volumes.find(|path| path.join("seed").is_file());
    found.with_context(|| format!("no layer in {} has a volume", layers.display()))
}

/// Starts a pod; returns the milliseconds from its manifest until its container runs, by the
/// runtime's timestamps.
fn started(node: &Node, name: &str) -> Result<f64> {
    let pod = pod(name, &json!({ "containers": [waiting("main")] }));
    let applied = clock::wall();
    node.apply(&pod)?;
    node.wait(name, "runs", |pod| status::runs(pod, "main"))?;
    let id = node.running(name, "main")?.id;
    let started = u64::try_from(node.truth().started_at(&id)?)?;
    let started = UNIX_EPOCH + Duration::from_nanos(started);
    let took = started.duration_since(applied);
    let took = took.context("a container is older than its manifest")?;
    Ok(took.as_secs_f64() * 1000.0)
}
