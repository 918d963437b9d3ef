//! Power cuts: the guest stops at random moments, and boots again from flushed data.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use rubelet_base::SplitMix;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::status::{container, ended, has_ended, is_ready, restarts};
use rubelet_testbed::vm::{Disk, Image};
use serde_json::{Value, json};

use crate::node::{Node, image_with_agent};

/// Number of power cuts.
const CUTS: u64 = 3;
/// Number of pods with an address and a host port.
const SERVERS: u64 = 3;
/// Number of pods that terminate between two cuts, at random moments.
const JOBS: u64 = 2;

/// Number of polls for all pods before a wait fails.
const LOOKS: u32 = 100;

/// Lists all pods, and returns when their state must be on disk: 200 ms later and after one flush.
/// The emulated machine is several times slower than others, so it waits for a second, and until the
/// flushing thread is idle (system call 202 is `futex`). Nothing else writes to the disk.
const LOOK: &str = r#"agent=$(cat /run/agent.pid)
kill -0 "$agent" || { tail -n 40 /run/agent.log; exit 1; }
[ -S /run/rubelet/rubelet.sock ] || { sleep 0.2; exit 0; }
rubelet get pods --all-namespaces -o json 2> /dev/null || exit 0
sleep 1
for thread in /proc/"$agent"/task/*; do
    [ "$(cat "$thread/comm")" = flush ] || continue
    while [ "$(cut -d ' ' -f 1 "$thread/syscall")" != 202 ]; do sleep 0.05; done
done"#;

/// Networks of sandboxes, as the runtime records them.
const NETWORKS: &str = "for record in /var/lib/rubelet/runtime/network/attachments/*.json; do
    tail -n 1 \"$record\" 2> /dev/null && echo
done; true";

/// The listed state, which must survive a power cut.
#[derive(Debug, Default)]
struct Kept {
    /// How the container of each finished pod has exited.
    done: BTreeMap<String, Value>,
    /// Restart counts.
    restarts: BTreeMap<String, u64>,
    /// Back-offs, in seconds.
    back_offs: BTreeMap<String, u64>,
}

impl Kept {
    /// Compares the pods of a node with the earlier state, and stores them. True if all earlier
    /// pods are listed.
    fn look(&mut self, node: &mut Node) -> Result<bool> {
        let text = node.run(LOOK)?;
        let Ok(list) = serde_json::from_str::<Value>(&text) else {
            return Ok(false);
        };
        let mut missing: BTreeSet<String> = self.restarts.keys().cloned().collect();
        for pod in list["items"].as_array().context("a list")? {
            let name = pod["metadata"]["name"].as_str().context("a name")?;
            missing.remove(name);
            self.compare(name, pod)
                .with_context(|| format!("pod {name}: {:#}", pod["status"]))?;
            self.keep(name, pod);
        }
        assert_given_once(node)?;
        Ok(missing.is_empty())
    }

    /// The same, as soon as the agent lists all pods.
    fn look_at_all(&mut self, node: &mut Node) -> Result<()> {
        for _ in 0..LOOKS {
            if self.look(node)? {
                return Ok(());
            }
        }
        bail!("the agent does not show {:?}", self.restarts.keys());
    }

    fn compare(&self, name: &str, pod: &Value) -> Result<()> {
        if let Some(before) = self.done.get(name) {
            ensure!(
                has_ended(pod) && ended(pod, "main") == before,
                "it was done: {before:#}"
            );
        }
        let count = self.restarts.get(name).copied().unwrap_or(0);
        ensure!(
            restarts(pod, "main") >= count,
            "it had restarted {count} times"
        );
        if let (Some(now), Some(before)) = (back_off(pod), self.back_offs.get(name)) {
            ensure!(now >= *before, "its back-off was {before} s");
        }
        Ok(())
    }

    fn keep(&mut self, name: &str, pod: &Value) {
        let name = name.to_owned();
        if has_ended(pod) {
            self.done.insert(name.clone(), ended(pod, "main").clone());
        }
        if let Some(back_off) = back_off(pod) {
            self.back_offs.insert(name.clone(), back_off);
        }
        self.restarts.insert(name, restarts(pod, "main"));
    }
}

/// The back-off of a pod's container in seconds, if it is in back-off.
fn back_off(pod: &Value) -> Option<u64> {
    let waiting = &container(pod, "main")["state"]["waiting"];
    let text = waiting["message"].as_str()?.strip_prefix("back-off ")?;
    let text = text.split(' ').next()?.strip_suffix('s')?;
    let (minutes, seconds) = text.split_once('m').unwrap_or(("0", text));
    Some(minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?)
}

/// Asserts that no container of these pods has run since the guest booted: each would have written a
/// file in a directory of this boot.
fn assert_not_run(done: &BTreeSet<String>, node: &mut Node) -> Result<()> {
    let notes = node.run("mkdir -p /run/notes && ls /run/notes")?;
    let again: Vec<&str> = notes.lines().filter(|name| done.contains(*name)).collect();
    ensure!(again.is_empty(), "they were done and run again: {again:?}");
    Ok(())
}

/// Asserts that no address and no port of the host belongs to two pods.
fn assert_given_once(node: &mut Node) -> Result<()> {
    let first = given_twice(&node.run(NETWORKS)?)?;
    if !first.is_empty() {
        // It may have moved from one to the other while the records were read.
        let text = node.run(NETWORKS)?;
        let second = given_twice(&text)?;
        ensure!(first.is_disjoint(&second), "{second:?} given twice: {text}");
    }
    Ok(())
}

/// Addresses and ports of the host that are in more than one record.
fn given_twice(records: &str) -> Result<BTreeSet<String>> {
    let (mut given, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for line in records.lines().filter(|line| !line.is_empty()) {
        let network: Value = serde_json::from_str(line).context(line.to_owned())?;
        let lease = &network["how"]["bridge"];
        let [addresses, ports] = ["addresses", "ports"].map(|list| lease[list].as_array());
        let ports = ports.into_iter().flatten().map(|port| &port["hostPort"]);
        for one in addresses.into_iter().flatten().chain(ports) {
            if !given.insert(one.to_string()) {
                twice.insert(one.to_string());
            }
        }
    }
    Ok(twice)
}

/// A pod that writes a file and runs a script.
fn noting(name: &str, policy: &str, script: &str) -> Value {
    let script = format!("touch /notes/{name}-guest; {script}");
    let mounts = json!([{ "name": "notes", "mountPath": "/notes" }]);
    let main = with(shell("main", &script), &json!({ "volumeMounts": mounts }));
    let notes = json!({ "path": "/run/notes", "type": "DirectoryOrCreate" });
    let spec = json!({
        "restartPolicy": policy,
        "containers": [main],
        "volumes": [{ "name": "notes", "hostPath": notes }],
    });
    pod(name, &spec)
}

/// A pod that serves its own name on a host port.
fn server(number: u64) -> Value {
    let script = format!("echo server-{number} > /tmp/index.html; exec httpd -f -h /tmp -p 8080");
    let port = json!({ "containerPort": 8080, "hostPort": 8000 + number });
    let main = with(shell("main", &script), &json!({ "ports": [port] }));
    pod(
        &format!("server-{number}"),
        &json!({ "containers": [main] }),
    )
}

fn apply_all(node: &mut Node) -> Result<()> {
    node.apply(&noting("done", "Never", "exit 0"))?;
    node.apply(&noting("failed", "Never", "exit 3"))?;
    node.apply(&noting("once", "OnFailure", "exit 0"))?;
    node.apply(&noting("crashes", "Always", "exit 1"))?;
    for number in 0..SERVERS {
        node.apply(&server(number))?;
    }
    Ok(())
}

/// Waits until all pods are in their final state.
fn wait_all(node: &mut Node, kept: &Kept) -> Result<()> {
    for name in ["done", "failed", "once"] {
        node.wait(name, "is done", has_ended)?;
    }
    // After another crash, because until then it has the earlier back-off.
    let before = |counts: &BTreeMap<String, u64>| counts.get("crashes-guest").copied().unwrap_or(0);
    let (count, longest) = (before(&kept.restarts), before(&kept.back_offs));
    let crashed = node.wait("crashes", "is in back-off again", |pod| {
        restarts(pod, "main") > count && back_off(pod).is_some()
    })?;
    ensure!(
        back_off(&crashed) >= Some(longest),
        "its back-off was {longest} s: {crashed:#}"
    );
    for number in 0..SERVERS {
        let name = format!("server-{number}");
        let seen = node.wait(&name, "is ready", is_ready)?;
        let address = seen["status"]["podIP"].as_str().context("an address")?;
        for place in [
            format!("{address}:8080"),
            format!("127.0.0.1:{}", 8000 + number),
        ] {
            let get = format!("wget -q -O - http://{place}/ 2> /run/wget && exit 0; sleep 0.3");
            let page = node.run(&format!(
                "for i in $(seq 100); do {get}; done; cat /run/wget; exit 1"
            ))?;
            assert_eq!(page.trim(), name, "at {place}");
        }
    }
    Ok(())
}

/// Runs one boot until the moment of the cut.
fn live(node: &mut Node, boot: u64, kept: &mut Kept, random: &mut SplitMix) -> Result<()> {
    for number in 0..JOBS {
        let script = format!("sleep {}.{}", random.next() % 6, random.next() % 10);
        node.apply(&noting(&format!("job-{boot}-{number}"), "Never", &script))?;
    }
    // Effects of a power cut on manifests are not tested here.
    node.run("sync")?;
    if boot == 0 {
        wait_all(node, kept)?;
    }
    // In some rounds the cut comes without a listing, during the recovery of the agent.
    for _ in 0..random.next() % 4 {
        kept.look_at_all(node)?;
    }
    node.run(&format!("sleep 0.{:03}", random.next() % 1000))
        .map(drop)
}

fn seed() -> Result<u64> {
    for name in ["RUBELET_SEED", "RUBELET_FIRST_SEED"] {
        if let Some(text) = std::env::var_os(name) {
            let text = text.to_string_lossy();
            return text.parse().with_context(|| format!("{name}={text}"));
        }
    }
    Ok(0)
}

#[test]
fn after_a_power_cut_finished_pods_are_not_run_again() -> Result<()> {
    let seed = seed()?;
    eprintln!("RUBELET_SEED={seed}");
    let mut random = SplitMix::new(seed);
    let image = image_with_agent(Image::default().modules(&Disk::MODULES), "cgroupfs")?;
    let disk = Disk::create(512)?;
    let mut kept = Kept::default();
    for boot in 0..=CUTS {
        let mut node = Node::boot_on(&image, &disk)?;
        if boot == 0 {
            node.load_images()?;
            apply_all(&mut node)?;
        }
        let done = kept.done.keys().cloned().collect();
        node.start_agent()?;
        if boot < CUTS {
            live(&mut node, boot, &mut kept, &mut random)?;
            assert_not_run(&done, &mut node)?;
            node.cut_power();
            continue;
        }
        wait_all(&mut node, &kept)?;
        kept.look_at_all(&mut node)?;
        assert_not_run(&done, &mut node)?;
        // As many as the jobs that had time to finish, and the three others.
        eprintln!("done after {CUTS} power cuts: {:?}", kept.done.keys());
    }
    Ok(())
}
