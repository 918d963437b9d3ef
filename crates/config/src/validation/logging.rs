//! The agent's log, its traces, and the logs of containers.

use super::{Check, CheckResult, at_least, not_zero, one_of, range, violation};
use crate::quantity::{Sign, sign};
use std::time::Duration;

/// The maximum of upstream's log library.
const MAX_VERBOSITY: i64 = 0x7fff_ffff;

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    agent(check)?;
    tracing(check)?;
    containers(check)
}

fn agent(check: &Check<'_>) -> CheckResult {
    let logging = &check.config.logging;
    one_of("logging.format", &logging.format, &["text", "json"])?;
    not_zero("logging.flushFrequency", logging.flush_frequency)?;
    range("logging.verbosity", logging.verbosity, 0, MAX_VERBOSITY)?;
    if !logging.vmodule.is_empty() && logging.format != "text" {
        let message = "works with the text format only".to_owned();
        return violation(["logging.vmodule", "logging.format"], message);
    }
    for (index, item) in logging.vmodule.iter().enumerate() {
        let field = format!("logging.vmodule[{index}]");
        if item.file_pattern.is_empty() || item.file_pattern.contains(['=', ',']) {
            let field = format!("{field}.filePattern");
            let message = format!(
                "must be a pattern without '=' and ',', is {:?}",
                item.file_pattern
            );
            return violation([field.as_str()], message);
        }
        range(
            &format!("{field}.verbosity"),
            item.verbosity,
            0,
            MAX_VERBOSITY,
        )?;
    }
    for (name, options) in [
        ("text", &logging.options.text),
        ("json", &logging.options.json),
    ] {
        let split = format!("logging.options.{name}.splitStream");
        let buffer = format!("logging.options.{name}.infoBufferSize");
        let buffered = sign(&options.info_buffer_size.0) != Some(Sign::Zero);
        for (field, used) in [(split, options.split_stream), (buffer, buffered)] {
            if used && !check.gates.enabled("LoggingAlphaOptions") {
                let message = "needs the feature gate LoggingAlphaOptions".to_owned();
                return violation([field.as_str()], message);
            }
        }
    }
    Ok(())
}

fn tracing(check: &Check<'_>) -> CheckResult {
    let Some(tracing) = &check.config.tracing else {
        return Ok(());
    };
    if let Some(rate) = tracing.sampling_rate_per_million {
        range("tracing.samplingRatePerMillion", rate, 0, 1_000_000)?;
    }
    let endpoint = tracing.endpoint.as_deref().unwrap_or_default();
    match endpoint.split_once("://") {
        None | Some(("dns" | "unix" | "unix-abstract", _)) => Ok(()),
        Some(_) => {
            let message = format!(
                "must be an address, or begin with dns://, unix:// or unix-abstract://, is \
                 {endpoint:?}"
            );
            violation(["tracing.endpoint"], message)
        }
    }
}

fn containers(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    let size = &config.container_log_max_size;
    if sign(size).is_none() {
        let message = format!("must be a quantity such as 10Mi, is {size:?}");
        return violation(["containerLogMaxSize"], message);
    }
    at_least("containerLogMaxFiles", config.container_log_max_files, 2)?;
    at_least(
        "containerLogMaxWorkers",
        config.container_log_max_workers,
        1,
    )?;
    let interval = config.container_log_monitor_interval;
    match interval >= Duration::from_secs(3) {
        true => Ok(()),
        false => {
            let interval = rubelet_base::duration::format_go(interval);
            violation(
                ["containerLogMonitorInterval"],
                format!("must be 3s or more, is {interval}"),
            )
        }
    }
}
