//! A node of a cluster whose machine shuts down.

use rubelet_host::logind::peer::{LogindPeer, SignalSender};

use crate::joined::{Joined, WAITS, bound, condition};
use crate::outside::TIMEOUT;

#[test]
fn the_cluster_sees_that_a_node_shuts_down_and_that_it_was_cancelled() {
    let mut started = None;
    let joined = Joined::start_with("worker", |builder| {
        let socket = builder.scratch().dir().join("bus");
        started = Some(LogindPeer::start(&socket, 1000).unwrap());
        let address = format!("unix:path={}", socket.display());
        builder
            .env("DBUS_SYSTEM_BUS_ADDRESS", address)
            .config("shutdownGracePeriod", "300s")
            .config("shutdownGracePeriodCriticalPods", "100s")
    });
    let logind = started.unwrap();
    let locks = |count: usize| {
        let counted = |_: &_| Ok((logind.locks() == count).then_some(()));
        let waited = joined.agent.wait_for("locks of logind", TIMEOUT, counted);
        waited.unwrap();
    };
    locks(1);
    joined.create(&bound("web", WAITS));
    joined.wait_ready("web");

    logind.announce(true, SignalSender::Logind);
    locks(0);
    let node = ("nodes", "", "worker");
    joined.wait_object(node, "not ready", |node| {
        let all = node["status"]["conditions"].as_array().unwrap();
        let mut ready = all.iter().filter(|one| one["type"] == "Ready");
        ready.any(|one| {
            one["status"] == "False"
                && one["reason"] == "KubeletNotReady"
                && one["message"] == "node is shutting down"
        })
    });
    let ended = joined.wait_pod("web", "ended", |pod| pod["status"]["phase"] == "Failed");
    let status = &ended["status"];
    assert_eq!(status["reason"], "Terminated", "{status}");
    assert_eq!(condition(&ended, "DisruptionTarget"), "True");
    // A DaemonSet's pod tolerates a node that is not ready.
    joined.create(&bound("late", WAITS));
    let refused = joined.wait_pod("late", "refused", |pod| pod["status"]["phase"] == "Failed");
    let status = &refused["status"];
    assert_eq!(status["reason"], "NodeShutdown", "{status}");

    logind.announce(false, SignalSender::Logind);
    joined.wait_node_ready("worker");
    joined.create(&bound("next", WAITS));
    joined.wait_ready("next");
    locks(1);
}
