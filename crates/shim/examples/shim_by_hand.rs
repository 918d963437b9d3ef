//! Drives a shim by hand. Without arguments it prints its usage.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_shim::{
    client::Client,
    protocol::Call,
    spawn::{self, COMMAND, SpawnOptions},
};

const HELP: &str = "\
shim_by_hand start DIR [CGROUP]   starts a shim with its socket in DIR
shim_by_hand call DIR JSON        makes a call, such as '\"state\"' or '{\"start\":{\"id\":\"c\"}}'
shim_by_hand events DIR           prints events and acknowledges them
";

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|first| first == COMMAND) {
        return rubelet_shim::main(&args[2..]);
    }
    let args: Vec<String> = args[1..]
        .iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match drive(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn drive(args: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    let patience = Duration::from_secs(60);
    match args {
        ["start", dir, rest @ ..] => {
            let cgroup = rest.first().map(|path| CgroupPath::parse(path));
            let cgroup = cgroup.transpose()?;
            let spawned = spawn::spawn(SpawnOptions {
                executable: Path::new("/proc/self/exe"),
                dir: &Path::new(dir).canonicalize()?,
                cgroup: cgroup.as_ref(),
            })?;
            let mut client = Client::new(spawned.socket, false, patience)?;
            // A shim that holds nothing ends with its last connection.
            client.call(Call::MakeSandbox(Box::default()), &[])?;
            writeln!(out, "{}", spawned.pid)?;
        }
        ["call", dir, json] => {
            let call: Call = serde_json::from_str(json)?;
            let mut client = Client::new(spawn::connect(Path::new(dir))?, false, patience)?;
            let (answer, _) = client.call(call, &[])?;
            writeln!(out, "{}", serde_json::to_string_pretty(&answer)?)?;
        }
        ["events", dir] => {
            let mut client = Client::new(spawn::connect(Path::new(dir))?, true, patience)?;
            loop {
                let (sequence, event) = client.event()?;
                writeln!(out, "{sequence} {}", serde_json::to_string(&event)?)?;
                client.ack(sequence)?;
            }
        }
        _ => out.write_all(HELP.as_bytes())?,
    }
    Ok(())
}
