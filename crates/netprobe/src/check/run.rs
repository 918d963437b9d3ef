//! Asks the questions of a check, one after the other.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::ControlFlow,
    os::fd::BorrowedFd,
    time::Duration,
};

use rubelet_base::error_text;

use super::{
    connect::{ConnectResult, connect},
    dns::{DnsAnswer, ask},
    finding::{CheckEvent, CheckKind, CheckOutcome, Finding},
    inputs::{CheckInput, CheckInputs, CheckTarget},
    judge::{self, PingCheckResult},
};
use crate::{
    packet::Family,
    ping::{MtuEvent, PingEvent, PingOptions, PingTarget, driver::PingError, ping, search_mtu},
    sockets::OpenSocket,
};

/// Echo requests to a host. One answer is enough.
const REQUESTS: u64 = 3;
/// Timeout of an echo request: longer than the kernel takes to report that an address does not
/// exist on the link.
const PING_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout of a nameserver for each of two questions.
const DNS_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of a connection: the first packet is sent three times by then.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout of a packet of the search for the MTU.
const MTU_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a check can't be run.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Echo requests can't be sent.
    #[error(transparent)]
    Ping(#[from] PingError),
    /// A socket can't be opened or waited for.
    #[error("cannot ask")]
    Socket(#[from] io::Error),
}

/// Asks all questions and reports each result, until `stop` is readable or closed, or `report` breaks.
/// Blocks the thread.
///
/// # Errors
/// A socket can't be opened, or waiting fails.
pub fn check(
    inputs: &CheckInputs,
    open: &dyn OpenSocket,
    stop: BorrowedFd<'_>,
    report: &mut dyn FnMut(CheckEvent) -> ControlFlow<()>,
) -> Result<(), CheckError> {
    let asker = Asker { inputs, open, stop };
    for kind in [
        CheckKind::Address,
        CheckKind::Gateway,
        CheckKind::Dns,
        CheckKind::Name,
        CheckKind::Service,
        CheckKind::ApiServer,
        CheckKind::Outside,
        CheckKind::Mtu,
    ] {
        let Some(finding) = asker.ask(kind)? else {
            return Ok(());
        };
        let event = CheckEvent::Checked {
            check: kind,
            finding,
        };
        if report(event).is_break() {
            return Ok(());
        }
    }
    Ok(())
}

struct Asker<'a> {
    inputs: &'a CheckInputs,
    open: &'a dyn OpenSocket,
    stop: BorrowedFd<'a>,
}

/// `None` if it is to stop.
type Asked<T> = Result<Option<T>, CheckError>;

impl Asker<'_> {
    fn ask(&self, kind: CheckKind) -> Asked<Finding> {
        let inputs = self.inputs;
        match kind {
            CheckKind::Address => Ok(Some(judge::addresses(inputs))),
            CheckKind::Gateway => self.gateways(),
            CheckKind::Dns => self.nameservers(),
            CheckKind::Name => self.name(),
            CheckKind::Service => self.ask_port(&inputs.service, judge::service),
            CheckKind::ApiServer => self.ask_port(&inputs.api_server, judge::api_server),
            CheckKind::Outside => match &inputs.outside {
                Err(why) => Ok(Some(Finding::skipped(&*why.0))),
                Ok(target) => {
                    let pinged = self.ping(target.address)?;
                    Ok(pinged.map(|pinged| judge::outside(target, pinged)))
                }
            },
            CheckKind::Mtu => match &inputs.outside {
                Err(why) => Ok(Some(Finding::skipped(&*why.0))),
                Ok(target) => self.mtu(target),
            },
        }
    }

    fn ask_port(
        &self,
        target: &CheckInput<CheckTarget>,
        judge: fn(&CheckTarget, &ConnectResult) -> Finding,
    ) -> Asked<Finding> {
        let target = match target {
            Ok(target) => target,
            Err(why) => return Ok(Some(Finding::skipped(&*why.0))),
        };
        let connected = connect(target.address, CONNECT_TIMEOUT, self.open, self.stop)?;
        Ok(connected.map(|connected| judge(target, &connected)))
    }

    /// Asks the next hop of each default route; the first one that is wrong counts.
    fn gateways(&self) -> Asked<Finding> {
        let mut first = None;
        for route in &self.inputs.routes {
            let pinged = match route.gateway {
                None => None,
                Some(gateway) => match self.ping(SocketAddr::new(gateway, 0))? {
                    None => return Ok(None),
                    pinged => pinged,
                },
            };
            let finding = judge::gateway(Some((route, pinged)));
            if finding.outcome == CheckOutcome::Wrong {
                return Ok(Some(finding));
            }
            first.get_or_insert(finding);
        }
        Ok(Some(first.unwrap_or_else(|| judge::gateway(None))))
    }

    /// The question for each nameserver: the name that the next step uses, or else a name that none
    /// has to know.
    fn asked_name(&self) -> &str {
        self.inputs.name.as_deref().unwrap_or("localhost")
    }

    fn nameservers(&self) -> Asked<Finding> {
        let mut answers = Vec::new();
        for &server in &self.inputs.nameservers {
            match self.question(server, Family::V4)? {
                None => return Ok(None),
                Some(answer) => answers.push((server, answer)),
            }
        }
        Ok(Some(judge::nameservers(&answers)))
    }

    fn name(&self) -> Asked<Finding> {
        let name = match &self.inputs.name {
            Ok(name) => name,
            Err(why) => return Ok(Some(Finding::skipped(&*why.0))),
        };
        let mut last = None;
        for &server in &self.inputs.nameservers {
            for family in [Family::V4, Family::V6] {
                match self.question(server, family)? {
                    None => return Ok(None),
                    // An unreachable nameserver is reported by the previous step.
                    Some(DnsAnswer::Error(_) | DnsAnswer::Silence) => break,
                    Some(answer @ DnsAnswer::Addresses(_)) => {
                        return Ok(Some(judge::name(name, Some(&answer))));
                    }
                    Some(answer) => {
                        last.get_or_insert(answer);
                    }
                }
            }
            // The first one that answers counts, as for the pod's own resolver.
            if last.is_some() {
                break;
            }
        }
        Ok(Some(judge::name(name, last.as_ref())))
    }

    fn question(&self, server: IpAddr, family: Family) -> Asked<DnsAnswer> {
        let name = self.asked_name();
        Ok(ask(
            server,
            name,
            family,
            DNS_TIMEOUT,
            self.open,
            self.stop,
        )?)
    }

    fn ping(&self, address: SocketAddr) -> Asked<PingCheckResult> {
        let target = PingTarget {
            name: address.ip().to_string(),
            address,
        };
        let options = PingOptions {
            count: Some(REQUESTS),
            interval: Duration::from_millis(200),
            timeout: PING_TIMEOUT,
            ..PingOptions::default()
        };
        let (mut found, mut ended) = (PingCheckResult::Silence, false);
        let mut report = |event: PingEvent| {
            match event {
                PingEvent::Reply(reply) => {
                    found = PingCheckResult::Answer(reply.rtt.unwrap_or_default());
                    ended = true;
                    return ControlFlow::Break(());
                }
                PingEvent::Error { message, .. } => found = PingCheckResult::Error(message),
                PingEvent::Summary { summary, .. } => ended = summary.sent == REQUESTS,
                _ => {}
            }
            ControlFlow::Continue(())
        };
        if let Err(error) = ping(&[target], &options, self.open, self.stop, &mut report) {
            let no_way = error.no_way().map(error_text);
            return Ok(Some(PingCheckResult::Error(no_way.ok_or(error)?)));
        }
        // A probe that is stopped ends early.
        Ok(ended.then_some(found))
    }

    fn mtu(&self, target: &CheckTarget) -> Asked<Finding> {
        let host = PingTarget {
            name: target.name.clone(),
            address: target.address,
        };
        let mut result = None;
        let mut report = |event| {
            if let MtuEvent::PathMtu { found, .. } = event {
                result = Some(found);
            }
            ControlFlow::Continue(())
        };
        match search_mtu(&host, MTU_TIMEOUT, self.open, self.stop, &mut report) {
            Err(error) if error.no_way().is_some() => result = Some(None),
            searched => searched?,
        }
        let interface = self.inputs.routes.first().and_then(|route| {
            let mut interfaces = self.inputs.interfaces.iter();
            interfaces.find(|one| one.name == route.interface)
        });
        let own = interface.map(|one| one.mtu);
        Ok(result.map(|found| judge::mtu(target, own, found)))
    }
}
