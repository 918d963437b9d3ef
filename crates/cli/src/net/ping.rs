//! `rubelet net ping`: is a host there, and how far away?

use std::time::Duration;

use anyhow::anyhow;
use clap::ArgGroup;
use rubelet_netprobe::{
    ping::{
        Fragmentation, MtuEvent, PingOptions, driver::MOST_TARGETS, options::MOST_DATA,
        text::mtu_text,
    },
    request::{ProbeRequest, json_line},
};

use super::{
    Lines, is_screen,
    ping_output::{PingDisplay, PingOutput},
    place::{PlaceArgs, Reports},
    resolve::FamilyArgs,
    seconds::{seconds, some_seconds},
};
use crate::{agent::Agent, failure::CommandError, terminal::Terminal};

/// Below this interval, and for floods, ping wants a privileged user.
const LEAST_INTERVAL: Duration = Duration::from_millis(2);
/// Timeout of a packet of a search for the path MTU.
const MTU_TIMEOUT: Duration = Duration::from_secs(1);

/// Send ICMP echo requests to a host, or to several
#[derive(Debug, Clone, clap::Args)]
#[command(
    group = ArgGroup::new("whom").required(true).args(["host", "targets"]),
    long_about = "Sends ICMP echo requests to a host from the network namespace of this command, or from \
                  inside a pod (--pod), and shows the answers as ping does. Options have ping's names. \
                  Needs no privileges where net.ipv4.ping_group_range allows it, else root; from inside a \
                  pod root. Exit code 0 if the host answers, 1 if not, 2 for other errors.",
    after_help = "\
Examples:
  rubelet net ping 10.88.0.7
  rubelet net ping -c 5 -i 0.2 -q web.example.com
  rubelet net ping --pod web 10.96.0.1
  rubelet net ping --mtu 10.88.0.7
  rubelet net ping -c 3 --targets 10.88.0.7,10.88.0.8,fd00::9
  rubelet net ping -c 100 -o json 10.88.0.7"
)]
pub(crate) struct PingArgs {
    /// Address or name
    host: Option<String>,
    /// Ping several hosts at once, and print a table
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', num_args = 1)]
    targets: Vec<String>,
    /// Stop after COUNT requests, or with -w after COUNT answers
    #[arg(short, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds between requests [default: 1]
    #[arg(short, value_name = "INTERVAL", value_parser = seconds)]
    interval: Option<Duration>,
    /// Stop after DEADLINE seconds
    #[arg(short = 'w', value_name = "DEADLINE", value_parser = some_seconds)]
    deadline: Option<Duration>,
    /// Seconds to wait for an answer [default: 10]
    #[arg(short = 'W', value_name = "TIMEOUT", value_parser = some_seconds)]
    timeout: Option<Duration>,
    /// Bytes of data in a request; less than 24 carry no time
    #[arg(short, value_name = "SIZE", default_value_t = 56)]
    size: usize,
    /// TTL or hop limit of requests
    #[arg(short = 't', value_name = "TTL", value_parser = clap::value_parser!(u8).range(1..))]
    ttl: Option<u8>,
    /// Print the time before each line
    #[arg(short = 'D')]
    timestamps: bool,
    /// Print the summary only
    #[arg(short)]
    quiet: bool,
    /// Flood: a dot for each request, which its answer removes
    #[arg(short, conflicts_with_all = ["quiet", "timestamps"])]
    flood: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// Path MTU discovery
    #[arg(short = 'M', value_name = "HOW", value_enum)]
    discovery: Option<Discovery>,
    /// Search the path MTU: the longest packet that arrives without being fragmented
    #[arg(
        long,
        conflicts_with_all = ["targets", "count", "interval", "deadline", "size", "ttl", "quiet", "flood",
                              "discovery", "live", "timestamps"]
    )]
    mtu: bool,
    /// Show the result so far in one line of the terminal, which is overwritten
    #[arg(long, conflicts_with_all = ["targets", "quiet", "flood", "output", "timestamps"])]
    live: bool,
    /// Output format
    #[arg(short, long, value_enum, conflicts_with = "timestamps")]
    output: Option<Lines>,
}

/// Path MTU discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Discovery {
    /// Never fragment, not on this machine either
    Do,
    /// Fragment packets on this machine that are too long for the known path MTU
    Want,
    /// Routers may fragment: the DF flag is not set
    Dont,
    /// Never fragment, and ignore the known path MTU
    Probe,
}

pub(super) async fn run(
    agent: &Agent,
    args: &PingArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let options = args.options()?;
    let targets: Vec<String> = args.host.iter().chain(&args.targets).cloned().collect();
    if targets.len() > MOST_TARGETS {
        let message = format!("give at most {MOST_TARGETS} targets");
        return Err(CommandError::Usage(message));
    }
    let family = args.family.family();
    if args.mtu {
        let probe = ProbeRequest::PathMtu {
            target: targets.concat(),
            family,
            timeout: args.timeout.unwrap_or(MTU_TIMEOUT),
        };
        return search(args, args.place.start(agent, probe).await?, terminal).await;
    }
    let shown = args.shown(terminal)?;
    let output = PingOutput::new(shown, options.count.filter(|_| args.deadline.is_some()));
    let probe = ProbeRequest::Ping {
        targets,
        family,
        options,
    };
    ping_all(args.place.start(agent, probe).await?, output, terminal).await
}

impl PingArgs {
    fn options(&self) -> Result<PingOptions, CommandError> {
        let usage = |message: String| Err(CommandError::Usage(message));
        if self.size > MOST_DATA {
            return usage(format!("-s {}: the most are {MOST_DATA} bytes", self.size));
        }
        let default = PingOptions::default();
        let interval = self.interval.unwrap_or(default.interval);
        let is_fast = self.flood || interval < LEAST_INTERVAL;
        if is_fast && !rustix::process::geteuid().is_root() {
            let least = LEAST_INTERVAL.as_millis();
            return usage(format!(
                "only root may flood or send requests less than {least} ms apart"
            ));
        }
        Ok(PingOptions {
            count: self.count,
            interval,
            deadline: self.deadline,
            timeout: self.timeout.unwrap_or(default.timeout),
            size: self.size,
            ttl: self.ttl,
            fragmentation: self.discovery.map(|discovery| match discovery {
                Discovery::Do => Fragmentation::Do,
                Discovery::Want => Fragmentation::Want,
                Discovery::Dont => Fragmentation::Dont,
                Discovery::Probe => Fragmentation::Probe,
            }),
            flood: self.flood && self.interval.is_none(),
            quiet: self.quiet || (!self.targets.is_empty() && self.output.is_none()),
        })
    }

    fn shown(&self, terminal: &Terminal<'_>) -> Result<PingDisplay, CommandError> {
        Ok(match () {
            () if self.output == Some(Lines::Json) => PingDisplay::Json,
            () if !self.targets.is_empty() => PingDisplay::Table,
            () if self.live && is_screen(terminal) => PingDisplay::Live,
            () if self.live => {
                let message = "--live needs a terminal on stdout; use -o json elsewhere";
                return Err(CommandError::Usage(message.to_owned()));
            }
            () => PingDisplay::Lines {
                timestamps: self.timestamps,
                flood: self.flood,
            },
        })
    }
}

async fn ping_all(
    mut reports: Reports,
    mut output: PingOutput,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    while let Some(event) = reports.next().await? {
        let text = output.text(&event);
        if !text.is_empty() {
            terminal.print(text)?;
        }
    }
    reports.finish()?;
    terminal.print(output.end())?;
    match output.all_answer() {
        true => Ok(()),
        false => Err(CommandError::Exit(1)),
    }
}

/// Shows a search for the path MTU.
async fn search(
    args: &PingArgs,
    mut reports: Reports,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let mut found_mtu = None;
    while let Some(event) = reports.next().await? {
        terminal.print(match args.output {
            Some(Lines::Json) => json_line(&event),
            None => mtu_text(&event),
        })?;
        if let MtuEvent::PathMtu { found, .. } = event {
            found_mtu = Some(found.is_some());
        }
    }
    reports.finish()?;
    match found_mtu {
        Some(true) => Ok(()),
        Some(false) => Err(CommandError::Exit(1)),
        None => Err(anyhow!("the search was interrupted").into()),
    }
}
