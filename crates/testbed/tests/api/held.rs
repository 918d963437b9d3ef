//! What an agent holds: to see that sessions leave nothing.

use std::path::PathBuf;
use std::process::Command;

use rubelet_testbed::http::get_tcp;
use rubelet_testbed::{Agent, proc, wait};

use crate::outside::TIMEOUT;

/// Growth of memory that is no leak, in bytes: the allocator keeps some. A session that is not forgotten has 40 KiB,
/// and a test hundreds of them.
const MEMORY: u64 = 4 << 20;

/// Tasks and descriptors that come and go with other work of the agent.
const OTHERS: usize = 8;

/// What the agent holds, with the supervisors of its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldResources {
    /// Tasks of the agent.
    tasks: usize,
    /// Descriptors of the agent and its supervisors.
    descriptors: usize,
    /// Processes below the agent: supervisors, and everything in containers.
    pub(crate) processes: usize,
    /// Memory of the agent and its supervisors, in bytes, without pages of their programs.
    memory: u64,
}

impl HeldResources {
    pub(crate) fn of(agent: &Agent) -> Self {
        let pid = agent.pid().unwrap();
        let (supervisors, others) = processes_below(pid);
        let ours = || [pid].into_iter().chain(supervisors.iter().copied());
        Self {
            tasks: tasks(agent),
            descriptors: ours().map(descriptors).sum(),
            processes: supervisors.len() + others.len(),
            memory: ours().filter_map(proc::anonymous_bytes).sum(),
        }
    }

    /// Waits until there are no more processes than that, and nothing changes.
    pub(crate) fn settled(agent: &Agent, processes: usize) -> Self {
        let mut last = None;
        wait::until("nothing changes any more", TIMEOUT, || {
            let now = Self::of(agent);
            let same = Self { memory: 0, ..now };
            let is_settled = now.processes <= processes && last == Some(same);
            last = Some(same);
            Ok(is_settled.then_some(now))
        })
        .unwrap_or_else(|error| panic!("{error}: {processes} processes, {last:?}"))
    }

    /// Waits until the agent holds no more than before.
    pub(crate) fn wait_no_more(agent: &Agent, before: Self) {
        let mut last = before;
        wait::until("nothing is left", TIMEOUT, || {
            last = Self::of(agent);
            let nothing = last.tasks <= before.tasks + OTHERS
                && last.descriptors <= before.descriptors + OTHERS
                && last.processes <= before.processes
                && last.memory <= before.memory + MEMORY;
            Ok(nothing.then_some(()))
        })
        .unwrap_or_else(|error| {
            let processes = commands(agent);
            panic!("{error}: before {before:?}, now {last:?}\n{processes}")
        });
    }
}

/// The children of a process, and everything below these.
fn processes_below(pid: u32) -> (Vec<u32>, Vec<u32>) {
    let parents: Vec<(u32, u32)> = proc::all_pids()
        .into_iter()
        .filter_map(|pid| Some((pid, proc::Stat::of(pid)?.parent)))
        .collect();
    let children = |of: u32| {
        let found = parents.iter().filter(move |(_, parent)| *parent == of);
        found.map(|(pid, _)| *pid)
    };
    let mut below: Vec<u32> = children(pid).collect();
    let supervisors = below.len();
    let mut next = 0;
    while let Some(one) = below.get(next).copied() {
        below.extend(children(one));
        next += 1;
    }
    let others = below.split_off(supervisors);
    (below, others)
}

/// The processes below the agent, as `ps` shows them.
fn commands(agent: &Agent) -> String {
    let (supervisors, others) = processes_below(agent.pid().unwrap());
    let pids = supervisors.iter().chain(&others);
    let pids: Vec<String> = pids.map(u32::to_string).collect();
    let mut ps = Command::new("ps");
    ps.args(["-o", "pid,ppid,stat,tty,wchan:20,lstart,args", "-p"])
        .arg(pids.join(","));
    let shown = ps.output().unwrap();
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

/// Descriptors of a process, without those by which it watches others: those of containers are opened some time
/// after their start.
fn descriptors(pid: u32) -> usize {
    let files = proc::open_files(pid).into_iter();
    let watches = |file: &PathBuf| file.to_string_lossy().contains("pidfd");
    files.filter(|file| !watches(file)).count()
}

fn tasks(agent: &Agent) -> usize {
    let address = format!("127.0.0.1:{}", agent.healthz_port());
    let text = get_tcp(&address, "/metrics").unwrap().text();
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("rubelet_async_tasks "));
    value.unwrap().parse().unwrap()
}
