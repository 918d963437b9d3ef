//! `rubelet doctor`: what keeps this machine from running pods, and how to fix it.

use rubelet_config::{Sources, parse_flags, resolve};
use rubelet_runtime::doctor::{self, Finding, Severity};
use serde_json::{Value, json};

use super::{
    binary::Binary,
    config::ConfigFiles,
    failure::CommandError,
    print::Form,
    terminal::{Terminal, visible},
};

/// Check whether this machine can run pods, and suggest fixes; changes nothing. Exit code 1 if no pod
/// can run
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    /// Flags of `rubelet run`: --config, --config-dir and those that begin with --runtime- count
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    flags: Vec<String>,
}

pub(super) fn run(
    args: DoctorArgs,
    binary: Binary,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let flags = parse_flags(args.flags.into_iter())
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let files = ConfigFiles::read(&flags)?;
    let sources = Sources {
        file: files.file(),
        drop_ins: &files.drop_ins,
        flags: &flags,
    };
    let resolved = resolve(sources)?;
    let options = &resolved.rubelet.runtime;
    let settings = (binary.runtime_settings)(options, &resolved.config.cgroup_driver)?;
    let findings = doctor::check(&settings);
    terminal.print(match args.output {
        None => text(&findings),
        Some(output) => {
            let all: Vec<Value> = findings.iter().map(entry).collect();
            output.of(&json!({ "findings": all }))
        }
    })?;
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count();
    match errors {
        0 => Ok(()),
        1 => Err(anyhow::anyhow!("pods cannot run on this machine: see the error above").into()),
        _ => Err(
            anyhow::anyhow!("pods cannot run on this machine: see the {errors} errors above")
                .into(),
        ),
    }
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn entry(finding: &Finding) -> Value {
    json!({
        "severity": name(finding.severity),
        "what": finding.what,
        "why": finding.why,
        "remedy": finding.remedy,
    })
}

/// Each finding with its reason and its fix below it.
fn text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "No problems found.\n".to_owned();
    }
    let mut text = String::new();
    for finding in findings {
        let (what, why) = (visible(&finding.what), visible(&finding.why));
        let remedy = visible(&finding.remedy);
        text.push_str(&format!("{}: {what}\n", name(finding.severity)));
        for (label, line) in [("why", why), ("do", remedy)] {
            if !line.is_empty() {
                text.push_str(&format!("  {label}: {line}\n"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_tells_what_why_and_what_to_do() {
        let finding = |severity, remedy: &str| Finding {
            severity,
            what: "IPv4 forwarding is off".to_owned(),
            why: "pods reach nothing outside of this machine".to_owned(),
            remedy: remedy.to_owned(),
        };
        let findings = [
            finding(Severity::Warning, "sysctl -w net.ipv4.ip_forward=1"),
            finding(Severity::Note, ""),
        ];
        assert_eq!(
            text(&findings),
            "warning: IPv4 forwarding is off\n  \
             why: pods reach nothing outside of this machine\n  \
             do: sysctl -w net.ipv4.ip_forward=1\n\
             note: IPv4 forwarding is off\n  \
             why: pods reach nothing outside of this machine\n"
        );
        assert_eq!(text(&[]), "No problems found.\n");
    }
}
