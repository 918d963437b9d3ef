//! From the probes that plans want of a pod to those that run.

use std::{sync::Arc, time::Duration};

use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ProbeKind, ProbeTarget, probe::Streak};
use tokio::time::Instant;

use super::{
    ProbeStatus, pod_probes::PodProbes, probe::Probe, probe_context::ProbeContext,
    probe_state::WantedProbes, task::ProberTask, timing,
};

impl ProberTask {
    /// Applies the changes that pods' tasks requested.
    pub(super) fn take_changes(&mut self) {
        for (uid, wanted) in self.rows.take_changes() {
            match wanted {
                Some(wanted) => self.compare(&uid, &wanted),
                None => self.drop_pod(&uid),
            }
        }
    }

    fn drop_pod(&mut self, uid: &PodUid) {
        for key in self.pods.remove(uid).unwrap_or_default().probes {
            self.drop_probe(key);
        }
        if self.pods.is_empty() {
            self.pods.shrink_to_fit();
            self.probes.shrink_to_fit();
        }
    }

    fn compare(&mut self, uid: &PodUid, wanted: &WantedProbes) {
        let mut pod = self.pods.remove(uid).unwrap_or_default();
        let old = std::mem::take(&mut pod.probes);
        // Those that waited for a startup probe which this process saw succeed wait no longer.
        let startups: Vec<ContainerId> = old
            .iter()
            .map(|key| &self.probes[*key as usize].trial)
            .filter(|trial| trial.kind == ProbeKind::Startup)
            .map(|trial| trial.id.clone())
            .collect();
        let mut old: Vec<Option<u32>> = old.into_iter().map(Some).collect();
        for target in &wanted.targets {
            let Some(trial) = ProbeContext::new(&wanted.pod, &wanted.ip, target) else {
                continue;
            };
            self.note_instance(uid, &mut pod, target);
            let known = old.iter_mut().find_map(|key| {
                let known = &self.probes[(*key)? as usize].trial;
                let same = known.id == trial.id && known.kind == trial.kind;
                key.take_if(|_| same)
            });
            let key = match known {
                Some(key) => {
                    self.update(key, trial);
                    key
                }
                None => self.add(target, trial, startups.contains(&target.id)),
            };
            pod.probes.push(key);
        }
        for key in old.into_iter().flatten() {
            self.drop_probe(key);
        }
        self.pods.insert(uid.clone(), pod);
    }

    /// Forgets the results of the previous instance. Those of the current one stay while no probe
    /// runs: a plan needs the result of a startup probe as long as the container runs.
    fn note_instance(&self, uid: &PodUid, pod: &mut PodProbes, target: &ProbeTarget) {
        let mut instances = pod.instances.iter_mut();
        match instances.find(|(name, _)| *name == target.container) {
            Some((_, id)) if *id == target.id => {}
            Some((_, id)) => {
                let before = std::mem::replace(id, target.id.clone());
                self.rows.change(uid, |row| row.forget(&before));
            }
            None => {
                let instance = (target.container.clone(), target.id.clone());
                pod.instances.push(instance);
            }
        }
    }

    fn add(&mut self, target: &ProbeTarget, trial: ProbeContext, startup_seen: bool) -> u32 {
        let spec = trial.probe();
        let found_running = target.started_at <= self.began && !startup_seen;
        let phase = if found_running {
            timing::phase(&trial.pod.uid, &target.container, trial.kind, spec.period)
        } else {
            Duration::ZERO
        };
        let now = self.clock.now();
        let wait = timing::first(now, target.started_at, spec.initial_delay, phase);
        let streak = Streak::new(target.kind, target.initial);
        let report = ProbeStatus {
            container: target.container.clone(),
            id: target.id.clone(),
            kind: target.kind,
            outcome: target.initial,
            length: 0,
            last: None,
            at: None,
            latency: Duration::ZERO,
            output: "".into(),
            late: 0,
            next: None,
        };
        self.rows.change(&trial.pod.uid, |row| row.begin(report));
        let mut probe = Probe::new(Arc::new(trial), streak);
        if !found_running {
            probe.first = Instant::now() + wait;
        }
        let key = u32::try_from(self.probes.insert(probe)).expect("fewer probes than 2^32");
        self.schedule(key, Instant::now() + wait);
        key
    }

    /// The pod was read again, or has another address. Attempts of a probe that is no longer the
    /// same do not count for the new one.
    fn update(&mut self, key: u32, trial: ProbeContext) {
        let probe = &mut self.probes[key as usize];
        if !trial.same_probe(&probe.trial) {
            // The outcome stays until the changed probe has one of its own.
            probe.streak = Streak::new(trial.kind, probe.streak.outcome());
            probe.break_off();
            probe.trial = Arc::new(trial);
            self.schedule(key, Instant::now());
            return;
        }
        if Arc::ptr_eq(&probe.trial.pod, &trial.pod) && probe.trial.ip == trial.ip {
            return;
        }
        probe.trial = Arc::new(trial);
        if std::mem::take(&mut probe.waits_for_address) {
            self.schedule(key, Instant::now());
        }
    }

    fn drop_probe(&mut self, key: u32) {
        self.wheel.cancel(key);
        let mut probe = self.probes.remove(key as usize);
        probe.break_off();
        let trial = &probe.trial;
        self.rows.change(&trial.pod.uid, |row| {
            if let Some(report) = row.report(&trial.id, trial.kind) {
                report.next = None;
            }
        });
    }
}
