//! Counts the steps of a process, and makes one of them fail: see `rubelet_testbed::steps`.

use anyhow::Result;

#[cfg(target_arch = "x86_64")]
const USAGE: &str =
    "usage: rubelet-steps PID process|child|grandchild kill|no-space none|NUMBER|CALL:PATH";

#[cfg(target_arch = "x86_64")]
fn main() -> Result<()> {
    use anyhow::Context as _;
    use rubelet_testbed::steps::{Order, trace};

    let words: Vec<String> = std::env::args().skip(1).collect();
    let [pid, victim, fault, at] = &words[..] else {
        anyhow::bail!(USAGE);
    };
    let order = Order::parse(victim, fault, at).context(USAGE)?;
    trace(pid.parse().context(USAGE)?, order, &mut std::io::stdout())
}

#[cfg(not(target_arch = "x86_64"))]
fn main() -> Result<()> {
    anyhow::bail!("steps are supported on x86-64 only")
}
