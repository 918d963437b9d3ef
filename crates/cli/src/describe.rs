//! `rubelet describe`: one pod in detail.

mod container;
mod env;
mod events;
mod json;
mod pod;
mod text;
mod volume;

use anyhow::anyhow;
use rubelet_server::{Resource, clock};

use super::{
    agent::{Agent, collection},
    events::of_pod,
    failure::CommandError,
    target::{self, NamespaceArgs, find, name_of, namespace_of},
    terminal::Terminal,
};

/// Shows one pod in detail
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Examples:\n  rubelet describe web\n  rubelet describe pod/web -n kube-system"
)]
pub(crate) struct DescribeArgs {
    /// pod, pod/NAME or NAME
    resource: String,
    /// Name of the pod, or a unique prefix of it
    name: Option<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
}

pub(super) async fn run(
    agent: &Agent,
    args: &DescribeArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let bare = args.name.is_none()
        && !args.resource.contains('/')
        && Resource::from_name(&args.resource).is_none();
    let (resource, name) = match bare {
        true => (Resource::Pods, Some(args.resource.clone())),
        false => target::parse(&args.resource, args.name.as_deref())?,
    };
    if resource != Resource::Pods {
        let plural = resource.plural();
        return Err(CommandError::Usage(format!(
            "only pods can be described; for {plural} use `rubelet get {plural} -o yaml`"
        )));
    }
    let namespace = args.namespace.namespace();
    let mut pods = agent.list(&collection(Resource::Pods, namespace)).await?;
    if let Some(wanted) = &name {
        pods.items = vec![find(agent, resource, &pods, wanted, namespace).await?];
    }
    if pods.items.is_empty() {
        return Err(anyhow!("no pods found").into());
    }
    for (index, pod) in pods.items.iter().enumerate() {
        let url = collection(Resource::Events, Some(namespace_of(pod)))
            .with("fieldSelector", of_pod(name_of(pod)));
        let events = agent.list(&url).await?.items;
        let separator = if index == 0 { "" } else { "\n\n" };
        let text = pod::describe(pod, &events, clock::now());
        terminal.print(format!("{separator}{text}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
