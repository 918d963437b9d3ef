//! A Kubernetes node agent: `rubelet run` keeps pods running, the other commands look at them.
//!
//! This crate only puts parts together: command line, wiring, signals, drain.

mod build_info;
mod cli;
mod explain;
mod run;
mod view;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{CommandFactory as _, Parser};

/// A Kubernetes node agent
#[derive(Debug, Parser)]
#[command(
    name = "rubelet",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Program {
    #[command(flatten)]
    client: cli::ClientOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run the agent; takes the kubelet's flags (`rubelet run --help` lists them)
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Run {
        /// The kubelet's flags
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        flags: Vec<String>,
    },
    /// The container runtime alone
    Runtime {
        #[command(subcommand)]
        command: RuntimeCommand,
    },
    #[command(flatten)]
    Client(cli::ClientCommand),
}

#[derive(Debug, clap::Subcommand)]
enum RuntimeCommand {
    /// Serve the container runtime's CRI on a socket, for crictl, a kubelet or another agent
    #[command(
        after_help = "Example:\n  rubelet runtime serve --listen unix:///run/rubelet/cri.sock"
    )]
    Serve {
        /// The socket [default: unix:///run/rubelet/runtime/cri.sock]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<String>,
        /// Flags of `rubelet run` that are about the runtime: --config, --cgroup-driver, --v and all
        /// that begin with --runtime-
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        flags: Vec<String>,
    },
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Before anything else: a shim is to stay small.
    if args.get(1).is_some_and(|first| first == "shim") {
        return rubelet_shim::main(&args[2..]);
    }
    let called = args.first().map(Path::new).and_then(Path::file_name);
    // Called by the kubelet's name, or with `run`, everything behind it is the kubelet's.
    if called.is_some_and(|name| name == "kubelet") {
        return run::main(&lossy(&args[1..]), true);
    }
    if args.get(1).is_some_and(|first| first == "run") {
        return run::main(&lossy(&args[2..]), false);
    }
    let program = Program::try_parse().unwrap_or_else(|error| cli::hint(error).exit());
    match program.command {
        Command::Run { flags } => run::main(&flags, false),
        Command::Runtime {
            command: RuntimeCommand::Serve { listen, flags },
        } => run::embedded::serve::main(listen.as_deref(), &flags),
        Command::Client(command) => cli::execute(program.client, command, Program::command()),
    }
}

fn lossy(args: &[OsString]) -> Vec<String> {
    args.iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect()
}
