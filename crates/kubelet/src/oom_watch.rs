//! What the kernel's log tells of processes that it killed for lack of memory: events of the node, and reasons of exits. What
//! the messages mean is decided in [`rubelet_node_plan::system_oom`] and [`rubelet_node_plan::container_oom`].

use std::{convert::Infallible, future::pending, io, sync::Arc};

use rubelet_host::kernel_log::{KernelLog, KernelRecord};
use rubelet_node_plan::{
    container_oom::container_of_message,
    system_oom::{SYSTEM_OOM, SystemOoms},
};
use rubelet_node_state::events::{EventType, Recorder, Subject};
use rubelet_pleg::PlegHandle;
use tracing::warn;

/// Reads the log of the kernel, for ever. Nothing runs while the kernel writes nothing.
pub async fn watch_ooms(pleg: PlegHandle, recorder: Recorder, node_name: Arc<str>) {
    match KernelLog::open() {
        Ok(log) => {
            let Err(error) = follow(log, &pleg, &recorder, &node_name).await;
            warn!(
                %error,
                "Cannot read /dev/kmsg any more: OOM kills of containers are told as the runtime tells them, and there \
                 will be no event SystemOOM"
            );
        }
        Err(error) => warn!(
            %error,
            "Cannot read /dev/kmsg: OOM kills of containers are told as the runtime tells them, and no event SystemOOM \
             will say that the machine ran out of memory"
        ),
    }
    pending::<()>().await;
}

async fn follow(
    mut log: KernelLog,
    pleg: &PlegHandle,
    recorder: &Recorder,
    node_name: &str,
) -> io::Result<Infallible> {
    let note = |record: &KernelRecord| {
        if let Some(container) = container_of(record) {
            pleg.note_oom_kill(container.into());
        }
    };
    // A container may have ended while no agent ran.
    while let Some(record) = log.next_written().await? {
        note(&record);
    }
    let mut ooms = SystemOoms::default();
    loop {
        let record = log.next().await?;
        note(&record);
        report(&record, &mut ooms, recorder, node_name);
    }
}

/// The container in which the kernel kills.
fn container_of(record: &KernelRecord) -> Option<&str> {
    of_kernel(record).and_then(container_of_message)
}

fn report(record: &KernelRecord, ooms: &mut SystemOoms, recorder: &Recorder, node_name: &str) {
    let victim = of_kernel(record).and_then(|message| ooms.observe(message, record.at));
    if let Some(victim) = victim {
        recorder.record(
            Subject::Node(node_name.into()),
            EventType::Warning,
            SYSTEM_OOM,
            &victim.event_message(),
        );
    }
}

/// The message, if the kernel wrote it. Processes can write whatever they like.
fn of_kernel(record: &KernelRecord) -> Option<&str> {
    record.is_of_kernel().then_some(&*record.message)
}

#[cfg(test)]
mod tests {
    use rubelet_node_state::clock::Clock;

    use super::*;

    fn record(line: &str) -> KernelRecord {
        KernelRecord::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn the_node_has_an_event_of_what_the_kernel_says_and_of_nothing_else() {
        let recorder = Recorder::new(Clock::system());
        let mut ooms = SystemOoms::default();
        for line in [
            "12,1,1000000,-;Out of memory: Killed process 1 (init) total-vm:1kB",
            "3,2,2000000,-;Memory cgroup out of memory: Killed process 2 (a) total-vm:1kB",
            "3,3,3000000,-;Out of memory: Killed process 3 (stress) total-vm:1kB\n",
        ] {
            report(&record(line), &mut ooms, &recorder, "n1");
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

    #[test]
    fn the_kernel_names_containers_and_no_process_does() {
        const MESSAGE: &str =
            "Tasks in /kubepods/pod1/c1 are going to be killed due to memory.oom.group set";
        for (priority, expected) in [(3, Some("c1")), (11, None)] {
            let record = record(&format!("{priority},1,1000000,-;{MESSAGE}\n"));
            assert_eq!(container_of(&record), expected, "{record:?}");
        }
    }
}
