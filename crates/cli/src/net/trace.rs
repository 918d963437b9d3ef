//! `rubelet net trace`: the routers on the way to a host.

use std::{net::IpAddr, time::Duration};

use rubelet_netprobe::{
    request::{ProbeRequest, json_line},
    trace::{
        TraceEvent, TraceMethod, TraceOptions,
        options::{MOST_FLOWS, MOST_QUERIES},
        text::{table_rows, text},
    },
};

use super::{
    CLEAR_SCREEN, Lines, is_screen, names::Names, place::PlaceArgs, resolve::FamilyArgs,
    seconds::some_seconds,
};
use crate::{agent::Agent, failure::CommandError, print::table, terminal::Terminal};

/// The port that a TCP probe is sent to by default.
const HTTP: u16 = 80;
/// Rounds of `--mtr` without a terminal, as `mtr --report` has them.
const REPORT_ROUNDS: u64 = 10;

/// Show the routers on the path to a host
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Shows the routers on the way to a host from the network namespace of this command, or \
                  from inside a pod (--pod), by probes whose TTL is used up there. Options have traceroute's names. All probes of a flow \
                  have the same addresses and ports, so that routers which balance load send them the same \
                  way; --flows shows other ways too. Needs no privileges with UDP and TCP. Exit code 0 if \
                  the host answers, 1 if not, 2 for other errors.",
    after_help = "\
Examples:
  rubelet net trace 10.96.0.1
  rubelet net trace -T -p 443 -n web.example.com
  rubelet net trace --pod web 10.96.0.1
  rubelet net trace --flows 8 web.example.com
  rubelet net trace --mtr web.example.com
  rubelet net trace -o json 10.96.0.1"
)]
pub(crate) struct TraceArgs {
    /// Address or name
    host: String,
    /// Probe by UDP (the default)
    #[arg(short = 'U', group = "method")]
    udp: bool,
    /// Probe by the first packet of a TCP connection; each probe has a source port of its own
    #[arg(short = 'T', group = "method")]
    tcp: bool,
    /// Probe by ICMP echo requests
    #[arg(short = 'I', group = "method")]
    icmp: bool,
    /// Destination port [default: 33434 for UDP, 80 for TCP]
    #[arg(
        short, value_name = "PORT", conflicts_with = "icmp",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    port: Option<u16>,
    /// Probes to each hop
    #[arg(
        short, value_name = "COUNT", default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_QUERIES))
    )]
    queries: u8,
    /// Last TTL
    #[arg(
        short, value_name = "TTL", default_value_t = 30,
        value_parser = clap::value_parser!(u8).range(1..)
    )]
    max: u8,
    /// First TTL
    #[arg(
        short, value_name = "TTL", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..)
    )]
    first: u8,
    /// Seconds to wait for an answer [default: 5; at most 1 for TCP]
    #[arg(short, value_name = "SECONDS", value_parser = some_seconds)]
    wait: Option<Duration>,
    /// Print addresses only, without looking up their names
    #[arg(short = 'n')]
    numeric: bool,
    /// Probe so many flows, and show the different ways that they take
    #[arg(
        long, value_name = "COUNT", default_value_t = 1, conflicts_with_all = ["mtu", "mtr"],
        value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_FLOWS))
    )]
    flows: u8,
    /// Show the MTU behind each hop that is smaller than the one before it (F=MTU)
    #[arg(long, conflicts_with_all = ["tcp", "mtr", "queries"])]
    mtu: bool,
    /// Repeat with one probe to each hop, and show a table that is updated
    #[arg(long, conflicts_with = "queries")]
    mtr: bool,
    /// Stop --mtr after COUNT rounds [default: never; 10 if stdout is no terminal]
    #[arg(
        short, value_name = "COUNT", requires = "mtr",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    count: Option<u64>,
    /// Seconds between the rounds of --mtr [default: 1]
    #[arg(short, value_name = "SECONDS", requires = "mtr", value_parser = some_seconds)]
    interval: Option<Duration>,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Lines>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &TraceArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    if args.first > args.max {
        let message = format!("-f {} is more than -m {}", args.first, args.max);
        return Err(CommandError::Usage(message));
    }
    let screen = args.mtr && args.output.is_none() && is_screen(terminal);
    let probe = ProbeRequest::Trace {
        target: args.host.clone(),
        family: args.family.family(),
        options: args.options(screen),
    };
    let mut reports = args.place.start(agent, probe).await?;
    let mut output = TraceOutput {
        args,
        screen,
        names: Names::default(),
        last_table: String::new(),
        reached: false,
    };
    while let Some(event) = reports.next().await? {
        let text = output.text(&event).await?;
        if !text.is_empty() {
            terminal.print(text)?;
        }
    }
    reports.finish()?;
    match output.reached {
        true => Ok(()),
        false => Err(CommandError::Exit(1)),
    }
}

impl TraceArgs {
    fn options(&self, screen: bool) -> TraceOptions {
        let default = TraceOptions::default();
        let (method, port) = match (self.tcp, self.icmp) {
            (true, _) => (TraceMethod::Tcp, HTTP),
            (_, true) => (TraceMethod::Icmp, 0),
            _ => (TraceMethod::Udp, default.port),
        };
        let endless = if screen || self.output.is_some() {
            0
        } else {
            REPORT_ROUNDS
        };
        TraceOptions {
            method,
            port: self.port.unwrap_or(port),
            first: self.first,
            max: self.max,
            queries: self.queries,
            flows: self.flows,
            wait: self.wait.unwrap_or(default.wait),
            length: default.length,
            mtu: self.mtu,
            rounds: self.mtr.then(|| self.count.unwrap_or(endless)),
            interval: self.interval.unwrap_or(default.interval),
            window: default.window,
        }
    }
}

struct TraceOutput<'a> {
    args: &'a TraceArgs,
    screen: bool,
    names: Names,
    last_table: String,
    reached: bool,
}

impl TraceOutput<'_> {
    async fn text(&mut self, event: &TraceEvent) -> Result<String, CommandError> {
        if let TraceEvent::End { reached, .. } = event {
            self.reached = *reached;
        }
        if self.args.output == Some(Lines::Json) {
            return Ok(json_line(event));
        }
        if !self.args.numeric {
            self.names.look_up(addresses(event)).await;
        }
        let names = |address| self.names.of(address);
        Ok(match event {
            TraceEvent::Round { hops, .. } => {
                let table = table(&table_rows(hops, &names));
                if self.screen {
                    return Ok(format!("{CLEAR_SCREEN}{}\n{table}", self.args.host));
                }
                self.last_table = table;
                String::new()
            }
            TraceEvent::Start { .. } if self.args.mtr => String::new(),
            TraceEvent::End { .. } if self.args.mtr => std::mem::take(&mut self.last_table),
            event => text(event, &names),
        })
    }
}

/// The addresses in a report.
fn addresses(event: &TraceEvent) -> Vec<IpAddr> {
    match event {
        TraceEvent::Hop(hop) => {
            let answers = hop.probes.iter().filter_map(|probe| probe.answer);
            answers.map(|answer| answer.from).collect()
        }
        TraceEvent::Round { hops, .. } => {
            let last = hops.iter().filter_map(|hop| hop.addresses.last());
            last.copied().collect()
        }
        TraceEvent::Start { .. } | TraceEvent::End { .. } => Vec::new(),
    }
}
