//! Events of the node about processes that the kernel killed because the machine was out of memory. What
//! they say is decided in [`rubelet_node_plan::system_oom`].

use std::{future::pending, sync::Arc};

use rubelet_host::kernel_log::{KernelLog, KernelRecord};
use rubelet_node_plan::system_oom::{SYSTEM_OOM, SystemOoms};
use rubelet_node_state::events::{EventType, Recorder, Subject};
use tracing::warn;

/// Reads the log of the kernel, for ever. Nothing runs while the kernel writes nothing.
pub async fn watch_ooms(recorder: Recorder, node_name: Arc<str>) {
    match KernelLog::open() {
        Ok(log) => follow(log, &recorder, &node_name).await,
        Err(error) => warn!(
            %error,
            "Cannot read /dev/kmsg: no event SystemOOM will say that the machine ran out of memory"
        ),
    }
    pending::<()>().await;
}

async fn follow(log: KernelLog, recorder: &Recorder, node_name: &str) {
    let mut ooms = SystemOoms::default();
    loop {
        let record = match log.next().await {
            Ok(record) => record,
            Err(error) => {
                warn!(%error, "Cannot read /dev/kmsg any more: there will be no event SystemOOM");
                return;
            }
        };
        report(&record, &mut ooms, recorder, node_name);
    }
}

fn report(record: &KernelRecord, ooms: &mut SystemOoms, recorder: &Recorder, node_name: &str) {
    // Processes can write whatever they like.
    if !record.is_of_kernel() {
        return;
    }
    if let Some(victim) = ooms.observe(&record.message, record.at) {
        recorder.record(
            Subject::Node(node_name.into()),
            EventType::Warning,
            SYSTEM_OOM,
            &victim.event_message(),
        );
    }
}

#[cfg(test)]
mod tests {
    use rubelet_node_state::clock::Clock;

    use super::*;

    #[test]
    fn the_node_has_an_event_of_what_the_kernel_says_and_of_nothing_else() {
        let recorder = Recorder::new(Clock::system());
        let mut ooms = SystemOoms::default();
        for line in [
            "12,1,1000000,-;Out of memory: Killed process 1 (init) total-vm:1kB",
            "3,2,2000000,-;Memory cgroup out of memory: Killed process 2 (a) total-vm:1kB",
            "3,3,3000000,-;Out of memory: Killed process 3 (stress) total-vm:1kB\n",
        ] {
            let record = KernelRecord::parse(line.as_bytes()).unwrap();
            report(&record, &mut ooms, &recorder, "n1");
        }
        let events = recorder.board().list();
        let [(_, _, event)] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(event.subject, Subject::Node("n1".into()));
        assert_eq!(&*event.reason, "SystemOOM");
        let message = "System OOM encountered, victim process: stress, pid: 3";
        assert_eq!(&*event.message, message);
    }
}
