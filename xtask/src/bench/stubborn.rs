//! Pods that ignore SIGTERM: how exactly SIGKILL follows the end of the grace period.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rubelet_testbed::{Agent, Containerd, containerd::HostPorts, images, proc, wait};

use super::report::Results;
use super::{Request, progress};

const PODS: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(300);
/// The grace periods, in turn.
const GRACES: [u64; 3] = [2, 3, 5];
/// Pause between two removals: stopping costs the runtime time of its own, which must not be
/// measured.
const PAUSE: Duration = Duration::from_millis(500);

/// Measures `stop_grace_error_ms_p99`.
///
/// A container records SIGTERM by writing a file, whose modification time is used; a pidfd reports
/// its exit.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let containerd = Containerd::start_with(HostPorts::None)?;
    let notes = containerd.scratch().subdir("notes")?;
    let mut builder = Agent::builder(&containerd).program(&request.program);
    for number in 0..PODS {
        builder = builder.manifest(file_name(number), manifest(number, &notes));
    }
    progress("start 100 pods that do not end at SIGTERM");
    let agent = builder.start()?;
    let all_ready = format!("{PODS}/{PODS} pods ready");
    agent.wait_notification("all pods are ready", TIMEOUT, |state| {
        state
            .status()
            .is_some_and(|status| status.starts_with(&all_ready))
    })?;
    let truth = containerd.truth()?;
    let mut ends = Vec::new();
    progress("remove one after the other");
    for container in truth.containers()? {
        let number: usize = (0..PODS)
            .find(|number| container.pod.starts_with(&pod_name(*number)))
            .context("a container of an unknown pod")?;
        let end = proc::end_of(truth.pid(&container.id)?)?;
        ends.push((number, end));
    }
    for (number, _) in &ends {
        agent.remove_manifest(&file_name(*number))?;
        wait::pass(PAUSE);
    }
    let mut errors = Vec::new();
    for (number, end) in ends {
        let killed = end.join().ok().context("a watcher died")??;
        let noted = std::fs::metadata(notes.join(pod_name(number)))
            .and_then(|note| note.modified())
            .with_context(|| format!("{} recorded no SIGTERM", pod_name(number)))?;
        let grace = Duration::from_secs(GRACES[number % GRACES.len()]);
        errors.push(distance(noted + grace, killed).as_secs_f64() * 1000.0);
    }
    errors.sort_by(f64::total_cmp);
    results.add("stop_grace_error_ms_p99", errors[errors.len() * 99 / 100]);
    drop(agent);
    containerd.remove()
}

fn distance(a: SystemTime, b: SystemTime) -> Duration {
    b.duration_since(a).unwrap_or_else(|early| early.duration())
}

fn pod_name(number: usize) -> String {
    format!("pod-{number:03}")
}

fn file_name(number: usize) -> String {
    format!("{}.yaml", pod_name(number))
}

fn manifest(number: usize, notes: &Path) -> String {
    let (name, grace) = (pod_name(number), GRACES[number % GRACES.len()]);
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  \
         terminationGracePeriodSeconds: {grace}\n  containers:\n  - name: main\n    image: {}\n    \
         imagePullPolicy: IfNotPresent\n    command: [sh, -c, \"trap 'echo > /notes/{name}' TERM; \
         while :; do sleep 1000 & wait; done\"]\n    volumeMounts:\n    - name: notes\n      \
         mountPath: /notes\n  volumes:\n  - name: notes\n    hostPath:\n      path: {}\n",
        images::BUSYBOX_IMAGE,
        notes.display()
    )
}
