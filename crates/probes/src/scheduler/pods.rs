//! Reconciles the running probes with those that pods' tasks set.

use std::{sync::Arc, time::Duration};

use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ProbeKind, ProbeTarget, probe::ProbeStreak};
use tokio::time::Instant;

use super::{
    ProbeStatus, pod_probes::PodProbes, probe::Probe, probe_context::ProbeContext,
    probe_state::WantedProbes, task::ProberTask, timing,
};

impl ProberTask {
    /// Applies the changes that pods' tasks requested.
    pub(super) fn take_changes(&mut self) {
        for (uid, wanted) in self.state.take_changes() {
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
        // Probes that waited for a startup probe start once this process saw it succeed.
        let startups: Vec<ContainerId> = old
            .iter()
            .map(|key| &self.probes[*key as usize].context)
            .filter(|context| context.kind == ProbeKind::Startup)
            .map(|context| context.id.clone())
            .collect();
        let mut old: Vec<Option<u32>> = old.into_iter().map(Some).collect();
        for target in &wanted.targets {
            let Some(context) = ProbeContext::new(&wanted.pod, &wanted.ip, target) else {
                continue;
            };
            self.note_instance(uid, &mut pod, target);
            let known = old.iter_mut().find_map(|key| {
                let known = &self.probes[(*key)? as usize].context;
                let same = known.id == context.id && known.kind == context.kind;
                key.take_if(|_| same)
            });
            let key = match known {
                Some(key) => {
                    self.update(key, context);
                    key
                }
                None => self.add(target, context, startups.contains(&target.id)),
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
                self.state.change(uid, |row| row.forget(&before));
            }
            None => {
                let instance = (target.container.clone(), target.id.clone());
                pod.instances.push(instance);
            }
        }
    }

    fn add(&mut self, target: &ProbeTarget, context: ProbeContext, startup_seen: bool) -> u32 {
        let spec = context.probe();
        let found_running = target.started_at <= self.began && !startup_seen;
        let phase = if found_running {
            timing::phase(
                &context.pod.uid,
                &target.container,
                context.kind,
                spec.period,
            )
        } else {
            Duration::ZERO
        };
        let now = self.clock.now();
        let wait = timing::first(now, target.started_at, spec.initial_delay, phase);
        let streak = ProbeStreak::new(target.kind, target.initial);
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
        self.state.change(&context.pod.uid, |row| row.begin(report));
        let mut probe = Probe::new(Arc::new(context), streak);
        if !found_running {
            probe.first = Instant::now() + wait;
        }
        let key = u32::try_from(self.probes.insert(probe)).expect("fewer probes than 2^32");
        self.schedule(key, Instant::now() + wait);
        key
    }

    /// Updates a probe after a change of the pod or of its address. Attempts of a changed probe do
    /// not count.
    fn update(&mut self, key: u32, context: ProbeContext) {
        let probe = &mut self.probes[key as usize];
        if !context.same_probe(&probe.context) {
            // The outcome stays until the changed probe has one of its own.
            probe.streak = ProbeStreak::new(context.kind, probe.streak.outcome());
            probe.abort();
            probe.context = Arc::new(context);
            self.schedule(key, Instant::now());
            return;
        }
        if Arc::ptr_eq(&probe.context.pod, &context.pod) && probe.context.ip == context.ip {
            return;
        }
        probe.context = Arc::new(context);
        if std::mem::take(&mut probe.waits_for_address) {
            self.schedule(key, Instant::now());
        }
    }

    fn drop_probe(&mut self, key: u32) {
        self.wheel.cancel(key);
        let mut probe = self.probes.remove(key as usize);
        probe.abort();
        let context = &probe.context;
        self.state.change(&context.pod.uid, |row| {
            if let Some(report) = row.report(&context.id, context.kind) {
                report.next = None;
            }
        });
    }
}
