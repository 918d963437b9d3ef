//! `rubelet status`: whether the node is ready, and what it waits for.

use super::{
    agent::{Agent, CallError},
    failure::CommandError,
    print::Form,
    terminal::Terminal,
    url::Url,
};
use serde_json::{Value, json};

/// Shows whether the node is ready, and what it waits for; exit code 0 if it is ready
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StatusArgs {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &StatusArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let version = agent.get(&Url::new("/version")).await?;
    let url = Url::new("/readyz").with("verbose", "true");
    let (ready, report) = agent.report(&url).await?;
    let version = version["gitVersion"].as_str().unwrap_or("unknown");
    let report = Report::read(&report);
    terminal.print(match args.output {
        Some(form) => form.of(&report.document(version, ready)),
        None => format!("version: {version}\n{}", report.lines()),
    })?;
    if ready {
        return Ok(());
    }
    Err(CallError::Broken(anyhow::anyhow!("the node is not ready")).into())
}

/// The report of `/readyz?verbose`.
struct Report<'a> {
    /// Failed checks and their reasons.
    problems: Vec<(&'a str, &'a str)>,
    /// Summary of all pods.
    pods: Vec<&'a str>,
    /// Further notices: a name and a line.
    notices: Vec<(&'a str, &'a str)>,
}

impl<'a> Report<'a> {
    fn read(report: &'a str) -> Self {
        let (mut problems, mut pods, mut notices) = (Vec::new(), Vec::new(), Vec::new());
        for line in report.lines() {
            let failed = line.strip_prefix("[-]");
            if let Some(problem) = failed.and_then(|line| line.split_once(" failed: ")) {
                problems.push(problem);
            } else if let Some(notice) = line.strip_prefix("[i]") {
                notices.extend(notice.split_once(": "));
            } else if !line.starts_with("[+]") && !line.starts_with("readyz check ") {
                pods.push(line);
            }
        }
        Self {
            problems,
            pods,
            notices,
        }
    }

    fn lines(&self) -> String {
        let ready = if self.problems.is_empty() {
            "yes"
        } else {
            "no"
        };
        let mut text = format!("ready: {ready}\n");
        for (name, why) in &self.problems {
            text.push_str(&format!("{name}: {why}\n"));
        }
        for pods in &self.pods {
            text.push_str(&format!("pods: {pods}\n"));
        }
        for (name, notice) in &self.notices {
            text.push_str(&format!("{name}: {notice}\n"));
        }
        text
    }

    fn document(&self, version: &str, ready: bool) -> Value {
        let problem = |(name, why): &(&str, &str)| json!({ "name": name, "message": why });
        json!({
            "version": version,
            "ready": ready,
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "pods": self.pods.join("\n"),
            "notices": self.notices.iter().map(problem).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_reported_and_what_is_well_is_not() {
        let well = "[+]ping ok\n[+]node ok\n3/4 pods ready\nreadyz check passed\n";
        let lines = |report| Report::read(report).lines();
        assert_eq!(lines(well), "ready: yes\npods: 3/4 pods ready\n");
        let unread = "[+]node ok\n3/4 pods ready\n\
                      [i]unread: nodes a: spec.taints: expected a list, found the number 7; cannot \
                      be read since 2026-03-01T10:00:00Z\nreadyz check passed\n";
        assert_eq!(
            lines(unread),
            "ready: yes\npods: 3/4 pods ready\n\
             unread: nodes a: spec.taints: expected a list, found the number 7; cannot be read \
             since 2026-03-01T10:00:00Z\n"
        );
        let waits = "[+]ping ok\n[-]node failed: waiting for the API server: no route\n\
                     0/0 pods ready, API server: no route\nreadyz check failed\n";
        assert_eq!(
            lines(waits),
            "ready: no\nnode: waiting for the API server: no route\n\
             pods: 0/0 pods ready, API server: no route\n"
        );
        let noticed = "3/4 pods ready\n[i]refused connections: 2 readwrite source\n";
        assert_eq!(
            lines(noticed),
            "ready: yes\npods: 3/4 pods ready\nrefused connections: 2 readwrite source\n"
        );
        let document = Report::read(noticed).document("v1", true);
        assert_eq!(document["notices"][0]["name"], "refused connections");
        let document = Report::read(waits).document("v1", false);
        assert_eq!(document["problems"][0]["name"], "node");
        assert_eq!(document["pods"], "0/0 pods ready, API server: no route");
    }
}
