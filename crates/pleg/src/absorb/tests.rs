//! Results of inspections, one after the other.

use jiff::Timestamp;
use rubelet_pod_plan::observed::Exit;

use super::*;
use crate::tests::seen_container;

fn pod(phase: ContainerPhase) -> ObservedPod {
    ObservedPod {
        sandboxes: Vec::new(),
        containers: vec![seen_container("c", phase)],
    }
}

fn running() -> ContainerPhase {
    ContainerPhase::Running {
        started_at: Timestamp::UNIX_EPOCH,
    }
}

fn exited(code: i32) -> ContainerPhase {
    ContainerPhase::Exited(Exit {
        code,
        reason: "Error".into(),
        message: "".into(),
        started_at: None,
        finished_at: Timestamp::UNIX_EPOCH,
    })
}

/// Results of inspections of one pod, one after the other.
struct Inspections {
    states: UnsettledStates,
    last: Arc<ObservedPod>,
    start: Instant,
}

impl Inspections {
    fn new() -> Self {
        Self {
            states: UnsettledStates::default(),
            last: Arc::default(),
            start: Instant::now(),
        }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    /// The phase that is published, whether it is another one, and the milliseconds of the recheck;
    /// or the time until which the result is withheld.
    fn inspect(
        &mut self,
        millis: u64,
        phase: ContainerPhase,
    ) -> Result<(ContainerPhase, bool, Option<u128>), u128> {
        let now = self.at(millis);
        let since_start = |at: Instant| (at - self.start).as_millis();
        match self.states.absorb(&self.last, pod(phase), now) {
            Absorbed::Withheld { until } => Err(since_start(until)),
            Absorbed::Published { pod, recheck_at } => {
                let changed = !Arc::ptr_eq(&pod, &self.last);
                assert_eq!(changed, pod != self.last);
                self.last = pod;
                let phase = self.last.containers[0].phase.clone();
                Ok((phase, changed, recheck_at.map(since_start)))
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_state_is_withheld_for_a_second() {
    use ContainerPhase::Unknown;
    let mut pod = Inspections::new();
    assert_eq!(pod.inspect(0, running()), Ok((running(), true, None)));
    assert_eq!(pod.inspect(100, Unknown), Err(1100));
    assert_eq!(pod.inspect(600, Unknown), Err(1100));
    // It was found again, so that the time starts again.
    assert_eq!(pod.inspect(700, running()), Ok((running(), false, None)));
    assert_eq!(pod.inspect(900, Unknown), Err(1900));
    assert_eq!(pod.inspect(1900, Unknown), Ok((Unknown, true, None)));
    assert_eq!(pod.inspect(5000, Unknown), Ok((Unknown, false, None)));
}

#[tokio::test]
async fn an_exited_container_that_seems_to_run_again_is_withheld_until_it_is_reported_twice() {
    let mut pod = Inspections::new();
    let exit = || exited(1);
    assert_eq!(pod.inspect(0, exit()), Ok((exit(), true, None)));
    assert_eq!(pod.inspect(10, running()), Ok((exit(), false, Some(110))));
    // The checks that follow see the exit, not what is withheld.
    let unknown = pod.inspect(20, ContainerPhase::Unknown);
    assert_eq!(unknown, Ok((exit(), false, Some(110))));
    assert_eq!(pod.inspect(110, running()), Ok((running(), true, None)));
}

#[tokio::test]
async fn the_earliest_recheck_counts() {
    let mut pod = Inspections::new();
    let killed = || exited(137);
    // The reason may become `OOMKilled`.
    assert_eq!(pod.inspect(0, killed()), Ok((killed(), true, Some(300))));
    assert_eq!(pod.inspect(5, running()), Ok((killed(), false, Some(105))));
    assert_eq!(pod.inspect(50, killed()), Ok((killed(), false, Some(300))));
    assert_eq!(
        pod.inspect(300, killed()),
        Ok((killed(), false, Some(2000)))
    );
    assert_eq!(pod.inspect(2000, killed()), Ok((killed(), false, None)));
}
