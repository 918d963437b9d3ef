//! `rubelet status`: whether the node does its work, and what it waits for.

use super::{
    agent::{Agent, CallError},
    failure::Failure,
    terminal::Terminal,
    url::Url,
};

/// Shows whether the node does its work, and what it waits for; exit code 0 if all is well
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StatusArgs {}

pub(super) async fn run(agent: &Agent, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
    let version = agent.get(&Url::new("/version")).await?;
    let url = Url::new("/readyz").with("verbose", "true");
    let (ready, report) = agent.report(&url).await?;
    let version = version["gitVersion"].as_str().unwrap_or("unknown");
    terminal.print(format!("version: {version}\n{}", lines(&report)))?;
    if ready {
        return Ok(());
    }
    Err(CallError::Broken(anyhow::anyhow!("the node is not ready")).into())
}

/// The report of `/readyz?verbose` in words: what fails, and the line about all pods.
fn lines(report: &str) -> String {
    let mut text = String::new();
    let mut failed = false;
    for line in report.lines() {
        if let Some((name, why)) = line
            .strip_prefix("[-]")
            .and_then(|line| line.split_once(" failed: "))
        {
            failed = true;
            text.push_str(&format!("{name}: {why}\n"));
        } else if !line.starts_with("[+]") && !line.starts_with("readyz check ") {
            text.push_str(&format!("pods: {line}\n"));
        }
    }
    let ready = if failed { "no" } else { "yes" };
    format!("ready: {ready}\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_told_and_what_is_well_is_not() {
        let well = "[+]ping ok\n[+]node ok\n3/4 pods ready\nreadyz check passed\n";
        assert_eq!(lines(well), "ready: yes\npods: 3/4 pods ready\n");
        let waits = "[+]ping ok\n[-]node failed: waiting for the API server: no route\n\
                     0/0 pods ready, API server: no route\nreadyz check failed\n";
        assert_eq!(
            lines(waits),
            "ready: no\nnode: waiting for the API server: no route\n\
             pods: 0/0 pods ready, API server: no route\n"
        );
    }
}
