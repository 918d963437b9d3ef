//! `/healthz`, `/livez` and `/readyz`.

use http::StatusCode;
use rubelet_http_core::{
    query::Query,
    respond::{self, ApiResult},
    status::ApiError,
};

use crate::{NodeView, Unhealthy};

/// A health endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthRoot {
    /// `/healthz`.
    Healthz,
    /// `/livez`.
    Livez,
    /// `/readyz`.
    Readyz,
}

impl HealthRoot {
    /// The word in the path.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Healthz, Self::Livez, Self::Readyz]
            .into_iter()
            .find(|root| root.as_str() == name)
    }
}

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// The server answers.
    Ping,
    /// The log is not blocked: tasks write it themselves, so a blocked log blocks the response.
    Log,
    /// The loops make progress.
    SyncLoop,
    /// The sources have reported and the runtime is available.
    Node,
}

impl Check {
    const fn of(root: HealthRoot) -> &'static [Self] {
        match root {
            HealthRoot::Healthz | HealthRoot::Livez => &[Self::Ping, Self::Log, Self::SyncLoop],
            HealthRoot::Readyz => &[Self::Ping, Self::Log, Self::SyncLoop, Self::Node],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Log => "log",
            Self::SyncLoop => "syncloop",
            Self::Node => "node",
        }
    }

    fn run(self, view: &dyn NodeView) -> Result<(), Unhealthy> {
        match self {
            Self::Ping => Ok(()),
            Self::Log => {
                tracing::trace!("health check");
                Ok(())
            }
            Self::SyncLoop => view.syncloop(),
            Self::Node => view.ready(),
        }
    }
}

/// Answers with `ok`, or with 500 and what is wrong; `check` is the single check that is asked for.
///
/// # Errors
/// There is no such check, or the query can't be read.
pub fn health(
    view: &dyn NodeView,
    root: HealthRoot,
    check: Option<&str>,
    query: &Query,
) -> ApiResult {
    match check {
        Some(name) => single(view, root, name),
        None => all(view, root, query.flag("verbose")?),
    }
}

fn single(view: &dyn NodeView, root: HealthRoot, name: &str) -> ApiResult {
    let check = Check::of(root).iter().find(|check| check.name() == name);
    let check = check.ok_or_else(ApiError::unknown_path)?;
    Ok(match check.run(view) {
        Ok(()) => respond::text(StatusCode::OK, "ok".to_owned()),
        Err(why) => {
            let text = format!("internal server error: {why}\n");
            respond::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    })
}

fn all(view: &dyn NodeView, root: HealthRoot, verbose: bool) -> ApiResult {
    let mut report = String::new();
    let mut healthy = true;
    for check in Check::of(root) {
        match check.run(view) {
            Ok(()) => report.push_str(&format!("[+]{} ok\n", check.name())),
            Err(why) => {
                healthy = false;
                report.push_str(&format!("[-]{} failed: {why}\n", check.name()));
            }
        }
    }
    if root == HealthRoot::Readyz {
        report.push_str(&format!("{}\n", view.summary()));
        for (name, text) in view.notices() {
            report.push_str(&format!("[i]{name}: {text}\n"));
        }
    }
    Ok(match (healthy, verbose) {
        (true, false) => respond::text(StatusCode::OK, "ok".to_owned()),
        (true, true) => respond::text(
            StatusCode::OK,
            format!("{report}{} check passed\n", root.as_str()),
        ),
        (false, _) => respond::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{report}{} check failed\n", root.as_str()),
        ),
    })
}
