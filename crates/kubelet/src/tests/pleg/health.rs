//! A pod that hangs, a slow runtime, and a silent one.

use rubelet_cri::CALLS;
use rubelet_sim::Subject;
use tokio::time::sleep;

use super::queries::{APP, DELIVERY_LIMIT, ONCE, millis};
use crate::tests::node::{Node, seconds};

/// Scenario 7.
#[tokio::test(start_paused = true)]
async fn containers_whose_status_hangs_affect_only_their_pods() {
    for count in [1, 20] {
        let node = Node::new();
        let bad: Vec<_> = (0..count)
            .map(|number| node.apply(&format!("bad-{number}"), APP))
            .collect();
        let good: Vec<_> = (0..20)
            .map(|number| node.apply(&format!("good-{number}"), ONCE))
            .collect();
        node.until_running().await;
        let hangs: Vec<_> = bad
            .iter()
            .map(|uid| {
                let hang = node.sim.hang("ContainerStatus", Subject::pod(uid));
                node.kill_app(uid, 1);
                hang
            })
            .collect();
        for uid in &good {
            for _ in 0..30 {
                sleep(seconds(1)).await;
                assert_eq!(node.agent().pleg().problem(), None);
                assert!(node.agent().runtime_state.borrow().is_ready());
            }
            let id = node.kill_app(uid, 1);
            let took = node.until_death_of(&id).await;
            assert!(took <= DELIVERY_LIMIT, "beside {count}: {took:?}");
        }
        for number in 0..count {
            let events = node.events(&format!("bad-{number}"));
            let warned = events
                .iter()
                .any(|event| event.contains("does not report the state"));
            assert!(warned, "{events:?}");
        }
        // The four slots of hung pods are enough for one of them.
        assert_eq!(node.node_events("RuntimeSlow"), u32::from(count > 4));
        assert_eq!(node.node_events("RuntimeNotSlow"), 0);
        drop(hangs);
        let again =
            |node: &Node| (0..count).all(|number| node.is_running(&format!("bad-{number}")));
        let took = node.until("they run again", again).await;
        assert!(took <= seconds(10), "{took:?}");
    }
}

/// Scenario 8.
#[tokio::test(start_paused = true)]
async fn a_runtime_silent_for_three_minutes_makes_the_node_not_ready() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(60)).await;
    let hangs: Vec<_> = CALLS
        .iter()
        .map(|call| node.sim.hang(call, Subject::any()))
        .collect();
    sleep(seconds(115)).await;
    assert_eq!(node.agent().pleg().problem(), None);
    sleep(seconds(125)).await;
    let problem = node.agent().pleg().problem().expect("it is gone");
    let text = "PLEG is not healthy: pleg was last seen active";
    assert!(
        problem.starts_with(text) && problem.ends_with("ago; threshold is 3m0s"),
        "{problem}"
    );
    assert!(!node.agent().runtime_state.borrow().is_ready());
    drop(hangs);
    let ready = |node: &Node| {
        node.agent().pleg().problem().is_none() && node.agent().runtime_state.borrow().is_ready()
    };
    let took = node.until("it is ready again", ready).await;
    assert!(took < seconds(5), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

/// Scenario 9.
#[tokio::test(start_paused = true)]
async fn slow_lists_do_not_make_the_node_not_ready() {
    let node = Node::new();
    for call in ["ListPodSandbox", "ListContainers"] {
        node.sim.set_latency_of(call, seconds(20));
    }
    let uid = node.apply("job", ONCE);
    node.until_running().await;
    let mut slowest: f64 = 0.0;
    for _ in 0..200 {
        sleep(millis(3300)).await;
        assert_eq!(node.agent().pleg().problem(), None);
        assert!(node.agent().runtime_state.borrow().is_ready());
        slowest = slowest.max(node.metric("rubelet_pleg_relist_in_progress_seconds"));
    }
    assert!(slowest > 10.0, "{slowest}");
    // Reported once, not for each list.
    assert_eq!(node.node_events("RuntimeSlow"), 1);
    assert_eq!(node.node_events("RuntimeNotSlow"), 0);
    let id = node.kill_app(&uid, 1);
    let took = node.until_death_of(&id).await;
    assert!(took <= DELIVERY_LIMIT, "{took:?}");
    for call in ["ListPodSandbox", "ListContainers"] {
        node.sim.set_latency_of(call, millis(0));
    }
    sleep(seconds(300)).await;
    assert_eq!(node.node_events("RuntimeNotSlow"), 1);
    assert_eq!(node.node_events("RuntimeSlow"), 1);
}
