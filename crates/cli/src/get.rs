//! `rubelet get`: objects as a table or as documents.

mod sort;

use rubelet_server::{Resource, clock};
use serde_json::Value;

use self::sort::SortKey;
use super::{
    agent::Agent,
    failure::CommandError,
    print::{Output, Printer},
    target::{self, NamespaceArgs, find, namespace_of},
    terminal::Terminal,
    watch::{self, Selection},
};

/// Shows objects
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  rubelet get pods -A
  rubelet get pods web db
  rubelet get pod web -o yaml
  rubelet get events -w
  rubelet get manifests")]
pub(crate) struct GetArgs {
    /// pods (po), events (ev) or manifests (mf); pod/NAME names one at once
    resource: String,
    /// Names, or unique prefixes of names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
    /// Label selector: a=b, a!=b, a in (b,c), a notin (b,c), a, !a
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// Field selector: metadata.name=x, status.phase!=Running, ...
    #[arg(long, value_name = "SELECTOR")]
    field_selector: Option<String>,
    /// Don't print headers
    #[arg(long)]
    no_headers: bool,
    /// Sort by a field, such as .metadata.creationTimestamp
    #[arg(long, value_name = "PATH")]
    sort_by: Option<String>,
}

pub(super) async fn run(
    agent: &Agent,
    args: GetArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let (resource, names) = target::parse_several(&args.resource, &args.names)?;
    let by_selector = args.selector.is_some() || args.field_selector.is_some();
    let wrong = match names.len() {
        1.. if by_selector => Some("a name cannot be combined with a selector"),
        2.. if args.watch => Some("give one name to follow, or none to follow all"),
        _ => None,
    };
    if let Some(message) = wrong {
        return Err(CommandError::Usage(message.to_owned()));
    }
    let sort_key = args.sort_by.as_deref().map(SortKey::parse).transpose()?;
    let namespace = args.namespace.namespace().filter(|_| resource.namespaced());
    let mut selection = Selection {
        resource,
        namespace: namespace.map(str::to_owned),
        labels: args.selector,
        fields: args.field_selector,
    };
    let mut objects = agent.list(&selection.list_url()).await?;
    let mut missing = None;
    if !names.is_empty() {
        let mut found = Vec::new();
        for wanted in &names {
            match find(agent, resource, &objects, wanted, namespace).await {
                Ok(object) => found.push(object),
                // The remaining objects are printed all the same.
                Err(CommandError::Error(error)) if names.len() > 1 => {
                    if let Some(before) = missing.replace(error) {
                        terminal.error(&format!("{before:#}"));
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        objects.items = found;
    }
    if let ([_], [only]) = (names.as_slice(), objects.items.as_slice()) {
        selection.narrow_to(only);
    }
    order(&mut objects.items, resource, sort_key.as_ref())?;
    let mut printer = Printer::new(resource, args.output, namespace.is_none(), !args.no_headers);
    let now = clock::now();
    match (names.len(), objects.items.as_slice()) {
        (1, [only]) => printer.single(only, now, terminal)?,
        (2.., []) => {}
        (_, []) if !args.watch => {
            if printer.prints_nothing_too() {
                printer.list(&[], now, terminal)?;
            } else {
                nothing(agent, resource, namespace, by_selector, terminal).await;
            }
        }
        (_, items) if args.watch => {
            for object in items {
                printer.single(object, now, terminal)?;
            }
        }
        (_, items) => printer.list(&items.iter().collect::<Vec<_>>(), now, terminal)?,
    }
    if let Some(error) = missing {
        return Err(CommandError::Error(error));
    }
    if args.watch {
        watch::follow(agent, &selection, objects, &mut printer, terminal).await?;
    }
    Ok(())
}

/// Sorts by the user's key; without one, events by last occurrence, all else in the agent's order.
fn order(
    items: &mut [Value],
    resource: Resource,
    key: Option<&SortKey>,
) -> Result<(), CommandError> {
    match key {
        Some(key) => key.sort(items)?,
        None if resource == Resource::Events => items.sort_by_key(super::events::order_of),
        None => {}
    }
    Ok(())
}

/// Reports that nothing was found, and in which namespaces there are objects.
async fn nothing(
    agent: &Agent,
    resource: Resource,
    namespace: Option<&str>,
    by_selector: bool,
    terminal: &mut Terminal<'_>,
) {
    let Some(namespace) = namespace else {
        terminal.note("No resources found");
        return;
    };
    terminal.note(&format!("No resources found in namespace {namespace:?}."));
    if by_selector {
        return;
    }
    // The hint is optional: an error here is ignored.
    let Ok(everywhere) = agent.list(&super::agent::collection(resource, None)).await else {
        return;
    };
    let mut namespaces: Vec<&str> = everywhere.items.iter().map(namespace_of).collect();
    let count = namespaces.len();
    namespaces.dedup();
    if count > 0 {
        let noun = if count == 1 {
            resource.singular()
        } else {
            resource.plural()
        };
        terminal.note(&format!(
            "There {} {count} {noun} in {}; use -A to see all, or -n NAMESPACE.",
            if count == 1 { "is" } else { "are" },
            namespaces.join(", ")
        ));
    }
}
