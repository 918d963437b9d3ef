//! The actions of a random life, and their strategy.

use proptest::prelude::*;

use super::{
    calls::{CALLS, LISTS},
    noise::{FLAVOURS, Noise, noise},
};

/// Largest number of pods in a life.
const PODS: usize = 4;

/// An action on the node. Numbers are indices into what exists, times are in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Nothing,
    KillContainer(usize, usize),
    /// The process exits; the runtime notices after this time.
    ExitUnnoticed(usize, usize, u64),
    LoseTrack(usize, u64),
    KillSandbox(usize),
    RemoveSandbox(usize),
    RestartAgent,
    AgentDown(u64),
    RestartRuntime,
    RuntimeDown(u64),
    Fault {
        call: usize,
        kind: usize,
        after: bool,
        times: usize,
    },
    Hang {
        call: usize,
        pod: usize,
        after: bool,
        time: u64,
    },
    /// The next lists omit this share of entries, in per mille.
    PartialList {
        list: usize,
        share: u16,
        seed: u64,
        times: usize,
    },
    FailPrepare(usize, u64),
    FailCleanUp(usize, u64),
    EditImage(usize, usize),
    EditInit(usize),
    EditLabel(usize),
    EditNetwork(usize),
    Remove(usize),
    Add(usize),
    Noise(usize, Noise),
}

impl Action {
    /// The same action, restricted to the first `pods` pods.
    pub(super) fn among(mut self, pods: usize) -> Self {
        match &mut self {
            Self::KillContainer(pod, _)
            | Self::ExitUnnoticed(pod, _, _)
            | Self::LoseTrack(pod, _)
            | Self::KillSandbox(pod)
            | Self::RemoveSandbox(pod)
            | Self::Hang { pod, .. }
            | Self::FailPrepare(pod, _)
            | Self::FailCleanUp(pod, _)
            | Self::EditImage(pod, _)
            | Self::EditInit(pod)
            | Self::EditLabel(pod)
            | Self::EditNetwork(pod)
            | Self::Remove(pod)
            | Self::Add(pod)
            | Self::Noise(pod, _) => *pod %= pods,
            Self::Nothing
            | Self::RestartAgent
            | Self::AgentDown(_)
            | Self::RestartRuntime
            | Self::RuntimeDown(_)
            | Self::PartialList { .. }
            | Self::Fault { .. } => {}
        }
        self
    }
}

#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) pods: usize,
    pub(super) flavour: usize,
    pub(super) init: usize,
    pub(super) regular: usize,
    pub(super) policy: &'static str,
    pub(super) latency: u64,
    /// Whether the agent watches processes, and by how much the runtime lags behind.
    pub(super) kernel: Option<u64>,
    pub(super) finishes_abandoned_calls: bool,
    /// Running time and exit code of instances, by the number of the start.
    pub(super) ends: Vec<(u64, i32)>,
    /// Duration in milliseconds and exit code of hooks, by number; without hooks if empty.
    pub(super) hooks: Vec<(u64, i32)>,
    pub(super) actions: Vec<(u64, Action)>,
}

fn action() -> impl Strategy<Value = Action> {
    let pod = 0..PODS;
    let span = prop_oneof![0_u64..100, 0_u64..5_000, 0_u64..60_000];
    let call = 0..CALLS.len();
    prop_oneof![
        2 => Just(Action::Nothing),
        4 => (pod.clone(), 0_usize..3).prop_map(|(pod, which)| Action::KillContainer(pod, which)),
        4 => (pod.clone(), 0_usize..3, prop_oneof![4 => 0_u64..100, 1 => 0_u64..20_000])
            .prop_map(|(pod, which, lag)| Action::ExitUnnoticed(pod, which, lag)),
        2 => (pod.clone(), span.clone()).prop_map(|(pod, span)| Action::LoseTrack(pod, span)),
        2 => pod.clone().prop_map(Action::KillSandbox),
        1 => pod.clone().prop_map(Action::RemoveSandbox),
        5 => Just(Action::RestartAgent),
        2 => span.clone().prop_map(Action::AgentDown),
        1 => Just(Action::RestartRuntime),
        2 => span.clone().prop_map(Action::RuntimeDown),
        4 => (call.clone(), 0_usize..4, any::<bool>(), 1_usize..4)
            .prop_map(|(call, kind, after, times)| Action::Fault { call, kind, after, times }),
        3 => (call, pod.clone(), any::<bool>(), span)
            .prop_map(|(call, pod, after, time)| Action::Hang { call, pod, after, time }),
        3 => (0..LISTS.len(), prop_oneof![Just(1000_u16), 100_u16..900], any::<u64>(), 1_usize..6)
            .prop_map(|(list, share, seed, times)| Action::PartialList { list, share, seed, times }),
        1 => (pod.clone(), 0_u64..30_000).prop_map(|(pod, time)| Action::FailPrepare(pod, time)),
        1 => (pod.clone(), 0_u64..30_000).prop_map(|(pod, time)| Action::FailCleanUp(pod, time)),
        3 => (pod.clone(), 0_usize..2).prop_map(|(pod, which)| Action::EditImage(pod, which)),
        1 => pod.clone().prop_map(Action::EditInit),
        1 => pod.clone().prop_map(Action::EditLabel),
        1 => pod.clone().prop_map(Action::EditNetwork),
        2 => pod.clone().prop_map(Action::Remove),
        3 => pod.clone().prop_map(Action::Add),
        6 => (pod, noise()).prop_map(|(pod, noise)| Action::Noise(pod, noise)),
    ]
}

/// Few lives, with long pauses.
pub(super) fn life() -> impl Strategy<Value = Life> {
    let pause = prop_oneof![0_u64..20, 0_u64..1_000, 0_u64..20_000];
    let end = (prop_oneof![0_u64..5, 0_u64..3_000, 0_u64..40_000], 0_i32..3);
    life_with(Just(2), 0_usize..3, pause, 1..24, end, 12)
}

/// Many lives, with short pauses.
pub(super) fn short_life() -> impl Strategy<Value = Life> {
    let pause = prop_oneof![4 => 0_u64..20, 4 => 0_u64..400, 1 => 0_u64..3_000];
    let end = (prop_oneof![0_u64..5, 0_u64..3_000], 0_i32..3);
    let pods = prop_oneof![6 => Just(2), 2 => Just(3), 1 => Just(4)];
    let inits = prop_oneof![3 => Just(0_usize), 1 => Just(1), 1 => Just(2)];
    life_with(pods, inits, pause, 10..16, end, 4)
}

fn life_with(
    pods: impl Strategy<Value = usize>,
    inits: impl Strategy<Value = usize>,
    pause: impl Strategy<Value = u64>,
    actions: std::ops::Range<usize>,
    end: impl Strategy<Value = (u64, i32)>,
    ends: usize,
) -> impl Strategy<Value = Life> {
    let hook = (
        prop_oneof![Just(0_u64), 0_u64..500, 0_u64..20_000],
        0_i32..2,
    );
    (
        (pods, prop_oneof![3 => Just(0), 2 => 0..FLAVOURS.len()]),
        (inits, 1_usize..3),
        prop_oneof![3 => Just("Always"), 1 => Just("OnFailure")],
        (
            prop_oneof![Just(0_u64), Just(4), Just(60)],
            prop_oneof![1 => Just(None), 3 => (0_u64..80).prop_map(Some)],
        ),
        any::<bool>(),
        prop::collection::vec(end, 0..ends),
        prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(hook, 1..8)],
        prop::collection::vec((pause, action()), actions),
    )
        .prop_map(
            |(
                (pods, flavour),
                (init, regular),
                policy,
                (latency, kernel),
                finishes_abandoned_calls,
                ends,
                hooks,
                actions,
            )| Life {
                pods,
                flavour,
                init,
                regular,
                policy,
                latency,
                kernel,
                finishes_abandoned_calls,
                ends,
                hooks,
                actions,
            },
        )
}
