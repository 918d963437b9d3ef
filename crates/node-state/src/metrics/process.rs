//! Metrics of the agent's own process, as the client libraries of Prometheus have them.

use std::sync::OnceLock;

use parking_lot::Mutex;
use prometheus::{Counter, GaugeVec};
use rubelet_host::own_process::{self, OwnProcess};

use super::factory::MetricFactory;

/// Metrics of this process; without samples until they are read.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    /// Locked while it is counted up to a reading: two scrapes must not both do it.
    cpu: Mutex<Counter>,
    resident_memory: GaugeVec,
    virtual_memory: GaugeVec,
    open_files: GaugeVec,
    open_files_limit: GaugeVec,
    start: GaugeVec,
    /// When this process started, in seconds since 1970.
    started_at: OnceLock<Option<f64>>,
}

impl ProcessMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            cpu: Mutex::new(factory.process_counter(
                "process_cpu_seconds_total",
                "Total user and system CPU time spent in seconds.",
            )),
            resident_memory: factory.process_gauge(
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
            ),
            virtual_memory: factory.process_gauge(
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes.",
            ),
            open_files: factory
                .process_gauge("process_open_fds", "Number of open file descriptors."),
            open_files_limit: factory.process_gauge(
                "process_max_fds",
                "Maximum number of open file descriptors.",
            ),
            start: factory.process_gauge(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
            ),
            started_at: OnceLock::new(),
        }
    }

    /// Reads the numbers.
    pub(super) fn look(&self) {
        let now = OwnProcess::read();
        let cpu = self.cpu.lock();
        // A scrape that read later may have been faster.
        cpu.inc_by((now.cpu.as_secs_f64() - cpu.get()).max(0.0));
        drop(cpu);
        let started_at = self.started_at.get_or_init(|| {
            let hundredths = own_process::started_at()?;
            Some(hundredths as f64 / 100.0)
        });
        let bytes = |number: Option<u64>| number.map(|number| number as f64);
        for (gauge, number) in [
            (&self.resident_memory, bytes(now.resident_memory)),
            (&self.virtual_memory, bytes(now.virtual_memory)),
            (&self.open_files, bytes(now.open_files)),
            (&self.open_files_limit, bytes(now.open_files_limit)),
            (&self.start, *started_at),
        ] {
            match number {
                Some(number) => gauge.with_label_values::<&str>(&[]).set(number),
                // What is not known is missing.
                None => gauge.reset(),
            }
        }
    }
}
