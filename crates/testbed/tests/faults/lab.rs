//! A runtime for faults, and its footprint before any pod.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::{Served, footprint, proc, wait};

use crate::subject::{Runtime, Subject, TIMEOUT, remove_sandbox, stop_sandbox};

pub(crate) struct Lab {
    pub(crate) subject: Subject,
    clean: BTreeSet<String>,
}

impl Lab {
    pub(crate) fn start() -> Result<Self> {
        Self::on(Served::start()?)
    }

    /// Runs a pod first; what is left after it stays for ever.
    pub(crate) fn on(served: Served) -> Result<Self> {
        let subject = Subject::on(Arc::new(Runtime::Served(served)))?;
        let mut lab = Self {
            subject,
            clean: BTreeSet::new(),
        };
        let sandbox = lab.subject.sandbox("first")?;
        sandbox.output("main", "true")?;
        drop(sandbox);
        lab.clean = wait::until("the first pod is gone", TIMEOUT, || {
            let found = lab.footprint()?;
            let pods = found.iter().any(|line| {
                ["process", "mount", "network interface"]
                    .iter()
                    .any(|kind| line.starts_with(kind))
            });
            Ok((!pods).then_some(found))
        })?;
        Ok(lab)
    }

    pub(crate) fn served(&self) -> &Served {
        match &*self.subject.runtime {
            Runtime::Served(served) => served,
            Runtime::Containerd(_) => unreachable!("faults are those of the embedded runtime"),
        }
    }

    fn footprint(&self) -> Result<BTreeSet<String>> {
        let own: Vec<u32> = self.served().pid().into_iter().collect();
        footprint::of(self.served().environment(), &own)
    }

    /// Waits until the footprint is the same as before the first pod.
    pub(crate) fn assert_clean(&self) -> Result<()> {
        let mut differs = String::new();
        let clean = wait::until("nothing is left", TIMEOUT, || {
            let found = self.footprint()?;
            let left = found.difference(&self.clean);
            let lost = self.clean.difference(&found);
            differs = left
                .map(|line| format!("left: {line}"))
                .chain(lost.map(|line| format!("lost: {line}")))
                .collect::<Vec<_>>()
                .join("\n");
            Ok(differs.is_empty().then_some(()))
        });
        clean.with_context(|| differs)
    }

    /// Removes all sandboxes that the runtime lists, with their containers.
    pub(crate) fn remove_all(&self) -> Result<()> {
        let client = self.subject.client();
        let request = v1::ListPodSandboxRequest::default();
        for item in self.subject.ask(client.list_pod_sandbox(request))?.items {
            self.subject.ask(stop_sandbox(client, &item.id))?;
            self.subject.ask(remove_sandbox(client, &item.id))?;
        }
        let request = v1::ListContainersRequest::default();
        let left = self
            .subject
            .ask(client.list_containers(request))?
            .containers;
        anyhow::ensure!(left.is_empty(), "containers without a sandbox: {left:#?}");
        Ok(())
    }

    /// Asserts that a pod runs from creation to removal.
    pub(crate) fn assert_works(&self) -> Result<()> {
        let sandbox = self.subject.sandbox("works")?;
        assert_eq!(sandbox.output("main", "echo yes")?, "yes\n");
        Ok(())
    }

    /// Asserts that everything listed has a status, with consistent states. A pod that has just lost
    /// its shim may be about to end.
    pub(crate) fn assert_consistent(&self) -> Result<()> {
        wait::until("all that is told goes together", TIMEOUT, || {
            Ok(self.goes_together()?.then_some(()))
        })
    }

    fn goes_together(&self) -> Result<bool> {
        let client = self.subject.client();
        let containers = client.list_containers(Default::default());
        let containers = self.subject.ask(containers)?.containers;
        let sandboxes = client.list_pod_sandbox(Default::default());
        let sandboxes = self.subject.ask(sandboxes)?.items;
        for item in &sandboxes {
            let request = v1::PodSandboxStatusRequest {
                pod_sandbox_id: item.id.clone(),
                verbose: true,
            };
            let status = self.subject.ask(client.pod_sandbox_status(request))?;
            if status.status.unwrap_or_default().state() != item.state() {
                return Ok(false);
            }
        }
        for item in containers {
            let mut owners = sandboxes.iter();
            let owner = owners.find(|one| one.id == item.pod_sandbox_id);
            let owner = owner.with_context(|| format!("{} has no sandbox", item.id))?;
            let runs = item.state() == v1::ContainerState::ContainerRunning;
            if runs && owner.state() != v1::PodSandboxState::SandboxReady {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The PID of a sandbox's shim. Its containers have its command line, too, until they are started.
pub(crate) fn shim_of(sandbox: &str) -> Result<u32> {
    let has_line = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut words = line.split('\0');
        words.nth(1) == Some("shim") && words.any(|word| word.contains(sandbox))
    };
    let found: Vec<u32> = proc::all_pids().into_iter().filter(has_line).collect();
    // PIDs say nothing: they start again at the lowest.
    let is_child = |pid: &u32| {
        let parent = proc::Stat::of(*pid).map(|stat| stat.parent);
        parent.is_some_and(|parent| found.contains(&parent))
    };
    let shim = found.iter().find(|pid| !is_child(pid));
    shim.copied()
        .with_context(|| format!("sandbox {sandbox} has no shim"))
}
