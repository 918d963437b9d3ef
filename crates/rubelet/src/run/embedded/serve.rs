//! `rubelet runtime serve`: the runtime alone, for a kubelet, crictl or another agent.

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, bail};
use rubelet_config::{Flags, parse_flags};
use rubelet_host::{CgroupFs, alloc};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use super::{bind, bound_logs, serve_cri, settings, start};
use crate::run::{load, logging, memory, node, notify, other_runtime, print_error, threads};

/// Serves the runtime until a signal. Exit codes: 0 stopped by a signal, 1 failed, 2 wrong flags.
pub(crate) fn main(listen: Option<&str>, args: &[String]) -> ExitCode {
    let (listen, flags) = match split(listen, args) {
        Ok(parts) => parts,
        Err(error) => {
            print_error(&format!(
                "{error:#}\nRun 'rubelet runtime serve --help' for the flags."
            ));
            return ExitCode::from(2);
        }
    };
    match run(listen, &flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The address, which may also follow the agent's flags, and the remaining flags.
fn split(listen: Option<&str>, args: &[String]) -> anyhow::Result<(Option<String>, Flags)> {
    let mut listen = listen.map(str::to_owned);
    let mut flags = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        match word.split_once('=') {
            Some(("--listen", address)) => listen = Some(address.to_owned()),
            _ if word == "--listen" => {
                listen = Some(rest.next().context("--listen needs an address")?.clone());
            }
            _ => flags.push(word.clone()),
        }
    }
    if let Some(address) = &mut listen {
        let path = address.strip_prefix("unix://").unwrap_or(address);
        if !path.starts_with('/') {
            bail!(
                "--listen must be a unix socket such as unix:///run/rubelet.sock, is {address:?}"
            );
        }
        *address = path.to_owned();
    }
    let flags = parse_flags(flags.into_iter())?;
    let about = |name: &str| {
        name.starts_with("runtime-")
            || matches!(name, "config" | "config-dir" | "cgroup-driver" | "v")
    };
    if let Some((flag, _)) = flags.iter().find(|(flag, _)| !about(flag.name)) {
        bail!(
            "--{} is not a flag of `runtime serve`; use --config, --config-dir, --cgroup-driver, --v, or flags that begin with --runtime-",
            flag.name
        );
    }
    Ok((listen, flags))
}

fn run(listen: Option<String>, flags: &Flags) -> anyhow::Result<()> {
    alloc::without_thread_caches();
    alloc::limit_arena();
    let resolved = load::resolve(flags)?;
    logging::start(&resolved.config.logging);
    for warning in &resolved.warnings {
        warn!("{warning}");
    }
    node::allow_open_files(resolved.config.max_open_files);
    let driver = &resolved.config.cgroup_driver;
    let mut settings = settings(&resolved.rubelet.runtime, driver)?;
    bound_logs(&mut settings, &resolved)?;
    let options = &resolved.rubelet.runtime;
    let path = listen.or_else(|| options.socket_path());
    let path = path.context("rubelet.runtime.socket is `none`: give an address with --listen")?;
    let threads = threads()?;
    let result = threads.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        let cgroups = CgroupFs::detect(Path::new("/sys/fs/cgroup"));
        let cgroups = cgroups.context("cannot detect the cgroup version")?;
        other_runtime::warn_of_living(&resolved, &cgroups).await;
        let runtime = start(settings).await?;
        let listener = bind(&path).await?;
        info!(
            version = crate::build_info::VERSION,
            commit = crate::build_info::COMMIT,
            socket = path,
            "Serving the CRI"
        );
        notify::ready();
        let work = vec![runtime.changes(), runtime.ended_sessions()];
        tokio::spawn(memory::trim_memory(work));
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            notify::stopping();
            info!("Shutting down; containers keep running");
        };
        serve_cri(listener, std::sync::Arc::clone(&runtime), stop).await;
        runtime.shutdown().await;
        Ok(())
    });
    threads.shutdown_timeout(std::time::Duration::from_secs(2));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_address_may_stand_anywhere() {
        for line in [
            "--listen unix:///run/r.sock --runtime-bridge b",
            "--runtime-bridge b --listen=/run/r.sock",
        ] {
            let (listen, flags) = split(None, &words(line)).unwrap();
            assert_eq!(listen.as_deref(), Some("/run/r.sock"), "{line}");
            let bridge = flags.iter().find(|(flag, _)| flag.name == "runtime-bridge");
            assert_eq!(bridge.map(|(_, value)| value.as_str()), Some(Some("b")));
        }
        let error = split(Some("tcp://1.2.3.4:5"), &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("--listen must be a unix socket")
        );
        assert!(split(None, &words("--listen")).is_err());
        assert!(split(None, &words("--nonsense")).is_err());
        let error = split(None, &words("--v 4 --pod-manifest-path /etc/pods")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("--pod-manifest-path is not a flag of `runtime serve`"),
            "{error}"
        );
    }
}
