//! Where pods come from and where their logs go.

use super::{Check, CheckResult, not_zero, violation};

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    not_zero("syncFrequency", config.sync_frequency)?;
    not_zero("fileCheckFrequency", config.file_check_frequency)?;
    not_zero("httpCheckFrequency", config.http_check_frequency)?;
    let url = config.static_pod_url.as_str();
    if !url.is_empty() && !is_http(url) {
        let message = format!("must begin with http:// or https:// and name a host, is {url:?}");
        return violation(["staticPodURL"], message);
    }
    if config.run_once {
        let message = "must be false; upstream removed this mode".to_owned();
        return violation(["runOnce"], message);
    }
    pod_logs_dir(&config.pod_logs_dir)
}

fn is_http(url: &str) -> bool {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !url.contains(|c: char| c.is_whitespace() || c.is_control())
    })
}

fn pod_logs_dir(path: &str) -> CheckResult {
    let field = ["podLogsDir"];
    if !path.starts_with('/') {
        return violation(field, format!("must be an absolute path, is {path:?}"));
    }
    let clean = path == "/"
        || path[1..]
            .split('/')
            .all(|part| !matches!(part, "" | "." | ".."));
    if !clean {
        let message = format!("must not contain empty, \".\" or \"..\" components, is {path:?}");
        return violation(field, message);
    }
    match path.is_ascii() {
        true => Ok(()),
        false => violation(field, format!("must be ASCII, is {path:?}")),
    }
}
