//! `rubelet version`: of this program, and of the agent if one runs.

use rubelet_server::{KUBERNETES_MAJOR, KUBERNETES_MINOR};
use serde_json::{Value, json};

use super::{
    agent::{Agent, CallError},
    binary::Binary,
    failure::CommandError,
    print::Form,
    terminal::Terminal,
    url::Url,
};

/// Shows versions
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct VersionArgs {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &VersionArgs,
    binary: Binary,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let server = match agent.get(&Url::new("/version")).await {
        Ok(version) => version,
        // The version must be available on a machine where no agent runs.
        Err(CallError::Away(_)) => Value::Null,
        Err(error) => return Err(error.into()),
    };
    let kubernetes = format!("v{KUBERNETES_MAJOR}.{KUBERNETES_MINOR}");
    if let Some(output) = args.output {
        let mut own = (binary.build_info)();
        own["kubernetes"] = kubernetes.into();
        let versions = json!({ "clientVersion": own, "serverVersion": server });
        return terminal.print(output.of(&versions));
    }
    let agent = server["gitVersion"]
        .as_str()
        .unwrap_or("not running, or not reachable from here");
    terminal.print(format!(
        "rubelet: {}\nKubernetes API: {kubernetes}\nagent: {agent}\n",
        env!("CARGO_PKG_VERSION")
    ))
}
