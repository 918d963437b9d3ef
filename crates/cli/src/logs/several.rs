//! The logs of all containers of a pod.

use anyhow::{Context as _, anyhow};
use futures_util::{StreamExt as _, pin_mut, stream};

use super::lines::Lines;
use crate::{
    agent::{Agent, CallError},
    failure::CommandError,
    terminal::Terminal,
    url::Url,
};

/// A log to be printed.
pub(super) struct LogTarget {
    pub(super) container: String,
    pub(super) url: Url,
    /// Prefix of each line.
    pub(super) prefix: String,
}

/// Prints logs: one after the other, or followed logs interleaved. A container without a log is
/// reported, and the others are printed.
pub(super) async fn print(
    agent: &Agent,
    wanted: &[LogTarget],
    follow: bool,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let mut missing = 0;
    let mut opened = Vec::new();
    for one in wanted {
        match agent.open(&one.url).await {
            Ok(pieces) if follow => opened.push((one, Lines::of(pieces))),
            Ok(pieces) => merge(vec![(one, Lines::of(pieces))], terminal).await?,
            Err(CallError::Refused(_, error)) if wanted.len() > 1 => {
                missing += 1;
                terminal.error(&format!("container {}: {error:#}", one.container));
            }
            Err(error) => return Err(error.into()),
        }
    }
    merge(opened, terminal).await?;
    match missing {
        0 => Ok(()),
        _ => Err(anyhow!("{missing} of {} containers have no such log", wanted.len()).into()),
    }
}

/// Prints lines as they arrive, until all logs have ended.
async fn merge(
    logs: Vec<(&LogTarget, Lines)>,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let of_one = |(one, lines): (_, Lines)| {
        stream::unfold(lines, move |mut lines| async move {
            let line = lines.next().await?;
            Some(((one, line), lines))
        })
        .boxed_local()
    };
    let lines = stream::select_all(logs.into_iter().map(of_one));
    pin_mut!(lines);
    while let Some((one, line)) = lines.next().await {
        let line = line.with_context(|| {
            let container = &one.container;
            format!("the log of {container} was cut off; perhaps the agent was stopped")
        })?;
        terminal.print([one.prefix.as_bytes(), &line].concat())?;
    }
    Ok(())
}
