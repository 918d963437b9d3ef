//! `rubelet events`: what happened, oldest first.

mod pleg;

use rubelet_server::{Resource, clock, table::event_times};
use serde_json::Value;

use super::{
    agent::{Agent, collection},
    failure::CommandError,
    print::{Output, Printer},
    target::{NamespaceArgs, name_of, parse_pod, pick},
    terminal::Terminal,
    watch::{self, Selection},
};

/// Shows events
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EventsArgs {
    #[command(subcommand)]
    of: Option<EventsOf>,
    #[command(flatten)]
    shown: ShownArgs,
}

/// Other events than those of the Kubernetes API.
#[derive(Debug, Clone, clap::Subcommand)]
enum EventsOf {
    /// List the pod lifecycle events that PLEG reported, with their latencies
    Pleg(ShownArgs),
}

/// Which events are shown, and how.
#[derive(Debug, Clone, clap::Args)]
struct ShownArgs {
    /// Only events of one pod: pod/NAME, NAME, or a unique prefix of its name
    #[arg(long = "for", value_name = "POD")]
    pod: Option<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// After listing, watch for new events
    #[arg(short, long)]
    watch: bool,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Don't print headers
    #[arg(long)]
    no_headers: bool,
}

/// Events in the order in which they happened: by time in whole seconds, then by version.
pub(super) fn order_of(event: &Value) -> (Option<jiff::Timestamp>, u64) {
    let version = event["metadata"]["resourceVersion"].as_str();
    (
        event_times(event).last,
        version
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
    )
}

pub(super) async fn run(
    agent: &Agent,
    args: EventsArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    match args.of {
        Some(EventsOf::Pleg(shown)) => pleg::run(agent, shown, terminal).await,
        None => of_the_api(agent, args.shown, terminal).await,
    }
}

async fn of_the_api(
    agent: &Agent,
    args: ShownArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let namespace = args.namespace.namespace();
    let fields = match &args.pod {
        Some(pod) => Some(of_pod(&full_name(agent, parse_pod(pod)?, namespace).await?)),
        None => None,
    };
    let selection = Selection {
        resource: Resource::Events,
        namespace: namespace.map(str::to_owned),
        labels: None,
        fields,
    };
    let mut events = agent.list(&selection.list_url()).await?;
    events.items.sort_by_key(order_of);
    let mut printer = Printer::new(
        Resource::Events,
        args.output,
        namespace.is_none(),
        !args.no_headers,
    );
    let now = clock::now();
    if args.watch {
        for event in &events.items {
            printer.single(event, now, terminal)?;
        }
        return watch::follow(agent, &selection, events, &mut printer, terminal).await;
    }
    if events.items.is_empty() && !printer.prints_nothing_too() {
        nothing_found(namespace, terminal);
        return Ok(());
    }
    printer.list(&events.items.iter().collect::<Vec<&Value>>(), now, terminal)
}

fn nothing_found(namespace: Option<&str>, terminal: &mut Terminal<'_>) {
    terminal.note(&match namespace {
        Some(namespace) => format!("No events found in namespace {namespace:?}."),
        None => "No events found.".to_owned(),
    });
}

/// Events outlive their pod, so a name that matches no pod is used as it is.
async fn full_name(
    agent: &Agent,
    wanted: &str,
    namespace: Option<&str>,
) -> Result<String, CommandError> {
    let pods = agent.list(&collection(Resource::Pods, namespace)).await?;
    let found = pick(Resource::Pods, &pods.items, wanted)?;
    Ok(found.map_or(wanted, name_of).to_owned())
}

/// The field selector for the events of a pod.
pub(super) fn of_pod(name: &str) -> String {
    format!("involvedObject.kind=Pod,involvedObject.name={name}")
}
