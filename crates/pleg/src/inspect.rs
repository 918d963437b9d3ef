//! Reading one pod from the runtime.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::Arc,
};

use futures_util::future::{join, join_all};
use rubelet_base::{ContainerId, PodUid, SandboxId, Seq};
use rubelet_cri::{CriError, RuntimeService, v1};
use rubelet_pod_plan::{
    ObservedContainer, ObservedPod, ObservedSandbox, cri_config::labels::POD_UID,
};

use super::{
    convert,
    kernel_exits::KernelExit,
    termination_message,
    tracked_pod::{InspectionRequest, TrackedPod},
};

/// Known state before an inspection: final records, and identifiers to read.
#[derive(Debug, Default)]
pub(super) struct InspectionPlan {
    /// True if the pod's sandboxes and containers are listed by label first.
    pub(super) list: bool,
    /// Sandboxes to read; those with a final record are not read again.
    pub(super) sandboxes: BTreeMap<SandboxId, Option<ObservedSandbox>>,
    /// Containers to read; those with a final record are not read again.
    pub(super) containers: BTreeMap<ContainerId, KnownContainer>,
}

/// A container whose identifier is known.
#[derive(Debug)]
pub(super) struct KnownContainer {
    /// Its sandbox, which its status does not contain.
    pub(super) sandbox: SandboxId,
    /// Its record, if that is final.
    pub(super) record: Option<ObservedContainer>,
    /// True if its PID is queried, too.
    pub(super) with_process: bool,
    /// The exit of its process, if the kernel has reported it.
    pub(super) ended: Option<KernelExit>,
}

/// An inspection that has ended.
pub(super) struct FinishedInspection {
    pub(super) tracked: Arc<TrackedPod>,
    pub(super) began: Seq,
    pub(super) request: InspectionRequest,
    /// `None` if it was slow and was aborted.
    pub(super) result: Option<Result<InspectionResult, CriError>>,
}

/// The result of an inspection.
#[derive(Debug, Default)]
pub(super) struct InspectionResult {
    pub(super) pod: ObservedPod,
    /// PIDs of the containers that were queried for them; `None` where the runtime reports none.
    pub(super) processes: Vec<(ContainerId, Option<u32>)>,
}

/// Reads everything that is not final, concurrently. What the runtime answers with `NotFound` is
/// gone.
pub(super) async fn inspect(
    runtime: &Arc<dyn RuntimeService>,
    uid: &PodUid,
    mut plan: InspectionPlan,
) -> Result<InspectionResult, CriError> {
    if plan.list {
        list(runtime, uid, &mut plan).await?;
    }
    let InspectionResult {
        mut pod,
        mut processes,
    } = InspectionResult::default();
    let (mut asked, mut sandboxes) = (Vec::new(), Vec::new());
    for (id, record) in plan.sandboxes {
        match record {
            Some(record) => pod.sandboxes.push(record),
            None => {
                asked.push(id.clone());
                sandboxes.push(read_sandbox(runtime, uid, id));
            }
        }
    }
    let (mut final_ones, mut containers) = (Vec::new(), Vec::new());
    for (id, known) in plan.containers {
        match known.record {
            Some(_) => final_ones.push((id, known)),
            None => containers.push(read_container(runtime, uid, id, known)),
        }
    }
    let (sandboxes, mut containers) = join(join_all(sandboxes), join_all(containers)).await;
    // If one read fails, all fail: an incomplete snapshot would show a running container as gone.
    let mut gone = BTreeSet::new();
    for (id, sandbox) in asked.into_iter().zip(sandboxes) {
        match sandbox? {
            Some(sandbox) => pod.sandboxes.push(sandbox),
            None => {
                gone.insert(id);
            }
        }
    }
    // Runtimes remove containers with their sandbox, and CRI-O reports none of them.
    let mut doubtful = Vec::new();
    for (id, known) in final_ones {
        match known.record {
            Some(record) if !gone.contains(&known.sandbox) => pod.containers.push(record),
            _ => {
                let known = KnownContainer {
                    record: None,
                    ..known
                };
                doubtful.push(read_container(runtime, uid, id, known));
            }
        }
    }
    containers.extend(join_all(doubtful).await);
    for container in containers {
        let Some((container, process)) = container? else {
            continue;
        };
        processes.extend(process.map(|pid| (container.id.clone(), pid)));
        pod.containers.push(container);
    }
    pod.sort();
    Ok(InspectionResult { pod, processes })
}

/// Adds the listed identifiers to the plan; final records of listed ones stay. A known identifier
/// that the list omits is read, too: only its own status proves that it is gone. Otherwise an
/// incomplete list would have a running container started a second time.
async fn list(
    runtime: &Arc<dyn RuntimeService>,
    uid: &PodUid,
    plan: &mut InspectionPlan,
) -> Result<(), CriError> {
    let selector = BTreeMap::from([(POD_UID.to_owned(), uid.as_str().to_owned())]);
    let sandboxes = runtime.list_pod_sandbox(v1::ListPodSandboxRequest {
        filter: Some(v1::PodSandboxFilter {
            label_selector: selector.clone(),
            ..v1::PodSandboxFilter::default()
        }),
    });
    let sandboxes = sandboxes.await?.items;
    let containers = runtime.list_containers(v1::ListContainersRequest {
        filter: Some(v1::ContainerFilter {
            label_selector: selector,
            ..v1::ContainerFilter::default()
        }),
    });
    let containers = containers.await?.containers;
    let mut known = std::mem::take(&mut plan.sandboxes);
    for item in sandboxes {
        let id = SandboxId::from(item.id);
        let record = known.remove(&id).flatten();
        plan.sandboxes.insert(id, record);
    }
    let unlisted = known.into_keys().map(|id| (id, None));
    plan.sandboxes.extend(unlisted);

    let mut known = std::mem::take(&mut plan.containers);
    for item in containers {
        let id = ContainerId::from(item.id);
        let known = known.remove(&id);
        let listed = KnownContainer {
            sandbox: item.pod_sandbox_id.into(),
            with_process: known.as_ref().is_some_and(|known| known.with_process),
            ended: known.as_ref().and_then(|known| known.ended),
            record: known.and_then(|known| known.record),
        };
        plan.containers.insert(id, listed);
    }
    let unlisted = known.into_iter().map(|(id, known)| {
        let record = None;
        (id, KnownContainer { record, ..known })
    });
    plan.containers.extend(unlisted);
    Ok(())
}

async fn read_sandbox(
    runtime: &Arc<dyn RuntimeService>,
    uid: &PodUid,
    id: SandboxId,
) -> Result<Option<ObservedSandbox>, CriError> {
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: id.as_str().to_owned(),
        verbose: false,
    };
    let answer = known(runtime.pod_sandbox_status(request)).await?;
    Ok(answer
        .and_then(|answer| answer.status)
        .filter(|status| is_of(&status.labels, uid))
        .map(convert::sandbox))
}

async fn read_container(
    runtime: &Arc<dyn RuntimeService>,
    uid: &PodUid,
    id: ContainerId,
    from: KnownContainer,
) -> Result<Option<(ObservedContainer, Option<Option<u32>>)>, CriError> {
    let request = v1::ContainerStatusRequest {
        container_id: id.as_str().to_owned(),
        verbose: from.with_process,
    };
    let answer = known(runtime.container_status(request)).await?;
    let Some(answer) = answer else {
        return Ok(None);
    };
    let process = from.with_process.then(|| convert::process(&answer.info));
    let Some(status) = answer.status.filter(|status| is_of(&status.labels, uid)) else {
        return Ok(None);
    };
    let message = termination_message::read(&status, from.ended.is_some()).await;
    let left = message.clone();
    let mut container = convert::container(status, from.sandbox, message);
    if let Some(end) = from.ended {
        container.kernel_exit = end.exit(&container.phase, left).map(Box::new);
    }
    Ok(Some((container, process)))
}

/// True unless the labels name another pod: identifiers also come from events, which may be wrong.
fn is_of(labels: &BTreeMap<String, String>, uid: &PodUid) -> bool {
    labels
        .get(POD_UID)
        .is_none_or(|owner| owner == uid.as_str())
}

/// Maps `NotFound` to `None`.
async fn known<T>(call: impl Future<Output = Result<T, CriError>>) -> Result<Option<T>, CriError> {
    match call.await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
