//! A Kubernetes node agent: `rubelet run` runs pods, the other commands inspect them.
//!
//! This crate only assembles the parts: their dependencies, signals, the order of the shutdown. The
//! commands are in `rubelet-cli`, the content of the local socket is in `rubelet-view`.

mod build_info;
mod run;

use std::{ffi::OsString, path::Path, process::ExitCode};

use rubelet_cli::{Binary, CommandLine};

/// Facts about this program that the commands need.
const BINARY: Binary = Binary {
    build_info: build_info::document,
    runtime_settings: run::embedded::settings,
};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Before anything else: a shim must stay small.
    if args.get(1).is_some_and(|first| first == "shim") {
        return rubelet_shim::main(&args[2..]);
    }
    let called = args.first().map(Path::new).and_then(Path::file_name);
    // If called as `kubelet`, or with `run`, all further arguments are the kubelet's.
    if called.is_some_and(|name| name == "kubelet") {
        return run::main(&lossy(&args[1..]), true);
    }
    if args.get(1).is_some_and(|first| first == "run") {
        return run::main(&lossy(&args[2..]), false);
    }
    match CommandLine::parse(args).unwrap_or_else(|error| error.exit()) {
        CommandLine::Run { flags } => run::main(&flags, false),
        CommandLine::ServeRuntime { listen, flags } => {
            run::embedded::serve::main(listen.as_deref(), &flags)
        }
        CommandLine::Client(call) => call.execute(BINARY),
    }
}

fn lossy(args: &[OsString]) -> Vec<String> {
    args.iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect()
}
