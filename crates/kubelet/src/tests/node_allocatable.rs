//! Limits of the node's cgroups: what follows from their success or failure.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cgroup_plan::{CgroupDriver, CgroupValues};
use rubelet_cri::{Timeouts, v1};
use rubelet_image_pull::images::PullParallelism;
use rubelet_node_plan::node_allocatable::{
    CgroupEnforcement, EnforcementError, LimitedCgroup, ReservedCgroup, ReservedFor,
};
use tokio::time::{sleep, timeout};

use super::node::{Node, seconds};
use crate::node_allocatable::NodeCgroups;

/// Longest time until the limits are in force.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Cgroups of which some can't be limited.
#[derive(Default)]
struct FakeCgroups {
    pods_error: Mutex<Option<String>>,
    /// `None` if no cgroup is limited to its reservation.
    system: Mutex<Option<Result<(), String>>>,
    drivers: Mutex<Vec<Option<CgroupDriver>>>,
}

impl NodeCgroups for FakeCgroups {
    fn enforce(&self, driver: Option<CgroupDriver>) -> Vec<CgroupEnforcement> {
        self.drivers.lock().push(driver);
        let error = self.pods_error.lock().clone();
        let components = vec!["a".to_owned(), "kubepods".to_owned()];
        let pods = CgroupEnforcement {
            cgroup: LimitedCgroup::Pods { components },
            result: error.map_or(Ok(()), |error| Err(EnforcementError(error))),
        };
        let system = self.system.lock().clone().map(|result| CgroupEnforcement {
            cgroup: LimitedCgroup::Reserved(ReservedCgroup {
                owner: ReservedFor::System,
                compressible: true,
                name: "/system".to_owned(),
                values: CgroupValues::default(),
            }),
            result: result.map_err(EnforcementError),
        });
        [Some(pods), system].into_iter().flatten().collect()
    }
}

/// A node with these cgroups, whose agent is not started.
fn node(cgroups: &Arc<FakeCgroups>) -> Node {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.node_cgroups = Some(Arc::clone(cgroups) as _);
    node
}

/// Reason, message and count of the events about the node.
fn events(node: &Node) -> Vec<String> {
    let events = node.recorder().board().list();
    let about = events
        .iter()
        .filter(|(_, _, event)| event.reason.contains("NodeAllocatable"));
    let mut told: Vec<_> = about
        .map(|(_, _, event)| format!("{} x{}: {}", event.reason, event.count, event.message))
        .collect();
    told.sort_unstable();
    told
}

const PODS: &str = "NodeAllocatableEnforced x1: Updated Node Allocatable limit across pods";

#[tokio::test(start_paused = true)]
async fn limits_are_set_again_each_minute_and_reported_once() {
    let cgroups = Arc::new(FakeCgroups::default());
    *cgroups.system.lock() = Some(Ok(()));
    let mut node = node(&cgroups);
    node.sim.set_cgroup_driver(v1::CgroupDriver::Systemd);
    node.start();
    node.agent().node_allocatable(PATIENCE).await.unwrap();
    sleep(seconds(301)).await;
    let drivers = cgroups.drivers.lock().clone();
    assert!((5..=6).contains(&drivers.len()), "{drivers:?}");
    assert!(
        drivers
            .iter()
            .all(|driver| *driver == Some(CgroupDriver::Systemd)),
        "{drivers:?}"
    );
    assert_eq!(
        events(&node),
        [
            PODS,
            "NodeAllocatableEnforced x1: Updated limits on system reserved cgroup /system"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_pods_exceed_is_tried_again() {
    let cgroups = Arc::new(FakeCgroups::default());
    *cgroups.pods_error.lock() = Some("device or resource busy".to_owned());
    let mut node = node(&cgroups);
    node.start();
    node.agent().node_allocatable(PATIENCE).await.unwrap();
    sleep(seconds(61)).await;
    let failed =
        "Failed to update Node Allocatable Limits [\"a\" \"kubepods\"]: device or resource busy";
    assert_eq!(
        events(&node),
        [format!("FailedNodeAllocatableEnforcement x2: {failed}")]
    );
    *cgroups.pods_error.lock() = None;
    sleep(seconds(61)).await;
    assert_eq!(events(&node)[1], PODS);
}

#[tokio::test(start_paused = true)]
async fn the_agent_does_not_start_without_the_cgroup_of_a_reservation() {
    let cgroups = Arc::new(FakeCgroups::default());
    *cgroups.system.lock() = Some(Err("there is no cgroup".to_owned()));
    let mut node = node(&cgroups);
    node.start();
    let refused = node.agent().node_allocatable(PATIENCE).await.unwrap_err();
    assert_eq!(
        refused.0,
        "Failed to enforce System Reserved Compressible Cgroup Limits on \"/system\": there is no \
         cgroup; correct systemReservedCgroup, or take \"system-reserved-compressible\" out of \
         enforceNodeAllocatable"
    );
    assert_eq!(node.failed().await, refused.0);
}

#[tokio::test(start_paused = true)]
async fn a_cgroup_that_goes_later_does_not_stop_the_agent() {
    let cgroups = Arc::new(FakeCgroups::default());
    *cgroups.system.lock() = Some(Ok(()));
    let mut node = node(&cgroups);
    node.start();
    node.agent().node_allocatable(PATIENCE).await.unwrap();
    *cgroups.system.lock() = Some(Err("there is no cgroup".to_owned()));
    assert!(timeout(seconds(150), node.failed()).await.is_err());
    let told = events(&node);
    assert!(
        told[0].starts_with("FailedNodeAllocatableEnforcement x2"),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_limited_before_the_runtime_reports_its_driver() {
    let cgroups = Arc::new(FakeCgroups::default());
    let mut node = node(&cgroups);
    node.sim.set_down(true);
    node.start();
    node.agent().node_allocatable(seconds(5)).await.unwrap();
    assert_eq!(cgroups.drivers.lock().len(), 0);
}
