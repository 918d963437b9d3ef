//! The audit log as configured.

use std::{fs::File, io::Read as _, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow, ensure};
use rubelet_audit::{AuditLevel, AuditLog, AuditObserver, AuditPolicy, Rotation};
use rubelet_base::ErrorChain;
use rubelet_config::AuditOptions;

/// Longest policy, in bytes.
const LONGEST_POLICY: u64 = 1024 * 1024;

/// Opens the log, if it is configured.
///
/// # Errors
/// The policy is invalid, or the log can't be opened: a node whose operator wants a log does not
/// start without it.
pub(super) fn open(
    options: &AuditOptions,
    observer: Arc<dyn AuditObserver>,
) -> anyhow::Result<Option<Arc<AuditLog>>> {
    if options.path.is_empty() {
        return Ok(None);
    }
    let policy = policy(options)?;
    let rotation = Rotation {
        max_bytes: u64::from(options.max_size) * 1024 * 1024,
        max_backups: usize::try_from(options.max_backups).unwrap_or(usize::MAX),
        max_age: Duration::from_secs(u64::from(options.max_age) * 24 * 60 * 60),
    };
    let log = AuditLog::open(Path::new(&options.path), rotation, policy, observer)
        .map_err(|error| anyhow!("rubelet.audit.path: {}", ErrorChain(&error)))?;
    Ok(Some(log))
}

fn policy(options: &AuditOptions) -> anyhow::Result<AuditPolicy> {
    let file = options.policy_file.as_str();
    if file.is_empty() {
        return Ok(AuditPolicy::of_level(match options.level.as_str() {
            "None" => AuditLevel::None,
            _ => AuditLevel::Metadata,
        }));
    }
    let mut text = String::new();
    let read = File::open(file).and_then(|file| {
        let mut bounded = file.take(LONGEST_POLICY + 1);
        bounded.read_to_string(&mut text)
    });
    read.with_context(|| format!("rubelet.audit.policyFile: cannot read {file}"))?;
    ensure!(
        text.len() as u64 <= LONGEST_POLICY,
        "rubelet.audit.policyFile: {file} has more than {LONGEST_POLICY} bytes"
    );
    AuditPolicy::read(file, &text).map_err(|error| anyhow!("rubelet.audit.policyFile: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(options: &AuditOptions) -> Result<bool, String> {
        let opened = open(options, Arc::new(()));
        opened
            .map(|log| log.is_some())
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn there_is_no_log_unless_it_is_asked_for() {
        assert_eq!(opened(&AuditOptions::default()), Ok(false));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let options = AuditOptions {
            path: path.display().to_string(),
            ..AuditOptions::default()
        };
        assert_eq!(opened(&options), Ok(true));
        assert!(path.exists());
    }

    #[test]
    fn a_start_names_what_is_wrong_with_the_policy_or_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let mut options = AuditOptions {
            path: at("audit.log"),
            policy_file: at("policy.yaml"),
            ..AuditOptions::default()
        };
        let policy = options.policy_file.clone();
        assert_eq!(
            opened(&options).unwrap_err(),
            format!(
                "rubelet.audit.policyFile: cannot read {policy}: No such file or directory (os \
                 error 2)"
            )
        );
        let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Request\n";
        std::fs::write(&policy, text).unwrap();
        assert_eq!(
            opened(&options).unwrap_err(),
            format!(
                "rubelet.audit.policyFile: {policy}:4:3: rules[0].level: must be None or \
                 Metadata, is \"Request\": bodies are never recorded"
            )
        );
        std::fs::write(&policy, text.replace("Request", "None")).unwrap();
        assert_eq!(opened(&options), Ok(true));
        options.path = at("");
        let error = opened(&options).unwrap_err();
        assert!(
            error.starts_with("rubelet.audit.path: cannot open the audit log "),
            "{error}"
        );
    }
}
