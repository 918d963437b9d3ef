//! `rubelet version`: of this program, and of the agent if one runs.

use rubelet_server::{KUBERNETES_MAJOR, KUBERNETES_MINOR};
use serde_json::{Value, json};

use crate::build_info;

use super::{
    agent::{Agent, CallError},
    failure::Failure,
    print::Form,
    terminal::Terminal,
    url::Url,
};

/// Shows versions
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct VersionArgs {
    /// Form of the output
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &VersionArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    let server = match agent.get(&Url::new("/version")).await {
        Ok(version) => version,
        // Asking for the version must work on a machine where no agent runs.
        Err(CallError::Away(_)) => Value::Null,
        Err(error) => return Err(error.into()),
    };
    let kubernetes = format!("v{KUBERNETES_MAJOR}.{KUBERNETES_MINOR}");
    if let Some(output) = args.output {
        let mut own = build_info::document();
        own["kubernetes"] = kubernetes.into();
        let versions = json!({ "clientVersion": own, "serverVersion": server });
        return terminal.print(output.of(&versions));
    }
    let agent = server["gitVersion"]
        .as_str()
        .unwrap_or("not running, or not reachable from here");
    terminal.print(format!(
        "rubelet: {}\nKubernetes API: {kubernetes}\nagent: {agent}\n",
        build_info::VERSION
    ))
}
