//! The desired pods: their kinds, their manifests, and their expected states.

use std::collections::BTreeMap;

use chaos_cri::Dice;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use serde_json::{Value, json};

/// The kind of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodKind {
    /// Two containers that keep running.
    Long,
    /// One that keeps running after two init containers.
    Init,
    /// One that keeps running beside a sidecar.
    Sidecar,
    /// One that fails repeatedly.
    Crash,
    /// One that completes successfully.
    Job,
}

const KINDS: [PodKind; 5] = [
    PodKind::Long,
    PodKind::Init,
    PodKind::Sidecar,
    PodKind::Crash,
    PodKind::Job,
];
/// Maximum number of pods at the same time.
const MOST: usize = 10;

/// A desired pod.
#[derive(Debug, Clone)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) kind: PodKind,
    /// Changes with each edit.
    pub(super) version: u64,
}

impl Pod {
    pub(super) fn file(&self) -> String {
        format!("{}.json", self.name)
    }

    /// The containers that keep running.
    pub(super) fn running(&self) -> &'static [&'static str] {
        match self.kind {
            PodKind::Long => &["main", "second"],
            PodKind::Init => &["main"],
            PodKind::Sidecar => &["main", "beside"],
            PodKind::Crash | PodKind::Job => &[],
        }
    }

    pub(super) fn manifest(&self) -> String {
        let env = json!({ "env": [{ "name": "VERSION", "value": self.version.to_string() }] });
        let main = |container: Value| with(container, &env);
        let spec = match self.kind {
            PodKind::Long => json!({ "containers": [main(waiting("main")), waiting("second")] }),
            PodKind::Init => json!({
                "initContainers": [shell("first", "exit 0"), shell("then", "sleep 0.3")],
                "containers": [main(waiting("main"))],
            }),
            PodKind::Sidecar => json!({
                "initContainers": [
                    with(waiting("beside"), &json!({ "restartPolicy": "Always" })),
                ],
                "containers": [main(waiting("main"))],
            }),
            PodKind::Crash => json!({ "containers": [main(shell("main", "sleep 0.5; exit 3"))] }),
            PodKind::Job => json!({
                "restartPolicy": "Never",
                "containers": [main(shell("main", "sleep 1"))],
            }),
        };
        pod(&self.name, &spec).to_string()
    }
}

/// All desired pods, by name.
#[derive(Debug)]
pub(super) struct DesiredPods {
    pods: BTreeMap<String, Pod>,
    /// Number of pods so far.
    made: u64,
}

impl DesiredPods {
    /// The initial pods: one of each kind and some more.
    pub(super) fn first(dice: &mut Dice) -> Self {
        let mut wanted = Self {
            pods: BTreeMap::new(),
            made: 0,
        };
        for kind in KINDS.into_iter().chain([PodKind::Long]) {
            wanted.add_kind(kind);
        }
        wanted.add(dice);
        wanted
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    pub(super) fn has_room(&self) -> bool {
        self.pods.len() < MOST
    }

    /// Adds a pod.
    pub(super) fn add(&mut self, dice: &mut Dice) -> Pod {
        let kind = KINDS[choose(dice, KINDS.len())];
        self.add_kind(kind)
    }

    fn add_kind(&mut self, kind: PodKind) -> Pod {
        self.made += 1;
        let name = format!("{kind:?}-{}", self.made).to_lowercase();
        let pod = Pod {
            name: name.clone(),
            kind,
            version: 1,
        };
        self.pods.insert(name, pod.clone());
        pod
    }

    /// A random pod that `fits`.
    pub(super) fn some(&self, dice: &mut Dice, fits: impl Fn(&Pod) -> bool) -> Option<Pod> {
        let fitting: Vec<&Pod> = self.iter().filter(|pod| fits(pod)).collect();
        let place = choose(dice, fitting.len());
        fitting.get(place).map(|pod| (*pod).clone())
    }

    /// The pod with another edit.
    pub(super) fn edit(&mut self, name: &str) -> Option<Pod> {
        let pod = self.pods.get_mut(name)?;
        pod.version += 1;
        Some(pod.clone())
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.pods.remove(name);
    }
}

/// A random index below `count`.
pub(super) fn choose(dice: &mut Dice, count: usize) -> usize {
    usize::try_from(dice.below(count as u64)).unwrap_or_default()
}
