//! One attempt of an exec probe.

use std::time::Duration;

use rubelet_api::container::{Container, EnvValue};
use rubelet_base::duration::format_go;
use rubelet_cri::{RuntimeService, v1};
use rubelet_pod_plan::cri_config::expand::expand;
use tokio::time::{Instant, sleep_until};

use super::{probe_context::ProbeContext, probe_try::ProbeTry};
use crate::{
    report::{MAX_OUTPUT, ProbeOutcome, ProbeReport},
    words::quoted,
};

/// Runs the command in the container. Exit code 0 passes; the runtime ends the command after its
/// timeout, and reports that.
pub(super) async fn run(
    runtime: &dyn RuntimeService,
    context: &ProbeContext,
    command: &[Box<str>],
) -> ProbeTry {
    let timeout = context.timeout();
    let cmd = expanded(command, context.container());
    let request = v1::ExecSyncRequest {
        container_id: context.id.as_str().to_owned(),
        cmd,
        timeout: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
    };
    let began = Instant::now();
    let mut call = runtime.exec_sync(request);
    // The runtime's timeout runs on while this process is stopped. How late this process notices
    // the timeout shows whether it was stopped, however long the runtime then takes.
    let (answer, noticed) = tokio::select! {
        biased;
        answer = &mut call => (answer, None),
        () = sleep_until(began + timeout) => {
            let noticed = began.elapsed();
            (call.await, Some(noticed))
        }
    };
    let latency = began.elapsed();
    let (verdict, output) = match answer {
        Ok(answer) => {
            let verdict = match answer.exit_code {
                0 => ProbeOutcome::Passed,
                _ => ProbeOutcome::Failed,
            };
            (verdict, output(&answer))
        }
        Err(error) if error.is_deadline_exceeded() => {
            let command = expanded(command, context.container()).join(" ");
            let output = format!(
                "command timed out: {} timed out after {}",
                quoted(command.as_bytes()),
                format_go(timeout)
            );
            (ProbeOutcome::TimedOut, output)
        }
        Err(error) => (ProbeOutcome::Errored, error.to_string()),
    };
    let took = match verdict {
        ProbeOutcome::TimedOut => noticed.unwrap_or(latency),
        // A result counts, however late this process reads it.
        _ => Duration::ZERO,
    };
    ProbeTry {
        report: ProbeReport {
            verdict,
            output,
            latency,
        },
        took,
    }
}

/// Replaces `$(NAME)` as the kubelet does for probes: values that are in the specification are
/// known, those that come from somewhere else count as empty.
fn expanded(command: &[Box<str>], container: &Container) -> Vec<String> {
    let lookup = |name: &str| {
        let mut named = container.env.iter().rev();
        named
            .find(|var| *var.name == *name)
            .map(|var| match &var.value {
                EnvValue::Literal(value) => &**value,
                EnvValue::Field(_)
                | EnvValue::Resource(_)
                | EnvValue::ConfigMapKey(_)
                | EnvValue::SecretKey(_)
                | EnvValue::FileKey(_) => "",
            })
    };
    command.iter().map(|word| expand(word, lookup)).collect()
}

/// The beginning of the command's output, stdout first.
fn output(answer: &v1::ExecSyncResponse) -> String {
    let stdout = &answer.stdout[..answer.stdout.len().min(MAX_OUTPUT)];
    let stderr = &answer.stderr[..answer.stderr.len().min(MAX_OUTPUT - stdout.len())];
    let mut text = String::from_utf8_lossy(stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(stderr));
    text.truncate(text.floor_char_boundary(MAX_OUTPUT));
    text
}
