//! `rubelet cp`: files of a container, in both directions.

mod file_spec;
mod progress;
mod upload;

use std::{io, path::Path, thread};

use anyhow::{Context as _, anyhow};
use http::Method;
use rubelet_files::{
    Attributes, Destination, FilesError, Received, Source, StreamReader, StreamWriter,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use self::{file_spec::FileSpec, progress::Progress, upload::Upload};
use super::{
    agent::Agent,
    containers,
    failure::CommandError,
    session::check_phase,
    target::{NamespaceArgs, find_pod, pod_path},
    terminal::{Terminal, visible},
    url::Url,
};

/// Chunks in flight.
const PIECES: usize = 4;

/// Copies files out of a container, or into one
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Copies files and directories out of a container, or into one, which needs no `tar` \
                  for that. Modes, times, holes and symbolic links are kept; links are never followed. \
                  Into a directory that is there, the copy is put beside what is in it, as with `cp -a`; \
                  with `/.` behind a source, its contents are.",
    after_help = "\
Examples:
  rubelet cp web:/etc/hosts hosts
  rubelet cp ./site web:/srv
  rubelet cp ./site/. web:/srv -c sidecar
  rubelet cp kube-system/dns:/etc/coredns ."
)]
pub(crate) struct CpArgs {
    /// A local path, or POD:PATH or NAMESPACE/POD:PATH
    #[arg(value_name = "SRC")]
    source: String,
    /// A local path, or POD:PATH or NAMESPACE/POD:PATH
    #[arg(value_name = "DST")]
    destination: String,
    /// Container [default: the first one]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Print no notes, and no progress
    #[arg(short, long)]
    quiet: bool,
}

pub(super) async fn run(
    agent: &Agent,
    args: &CpArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let source = FileSpec::parse(&args.source)?;
    let destination = FileSpec::parse(&args.destination)?;
    match (&source, &destination) {
        (FileSpec::Remote { .. }, FileSpec::Local(local)) => {
            let url = url(agent, args, &source, terminal).await?;
            download(agent, &url, local, args.quiet, terminal).await
        }
        (FileSpec::Local(local), FileSpec::Remote { .. }) => {
            let url = url(agent, args, &destination, terminal).await?;
            upload(agent, &url, local, args.quiet, terminal).await
        }
        (FileSpec::Local(_), FileSpec::Local(_)) => Err(CommandError::Usage(
            "one of the two must be in a pod: POD:PATH or NAMESPACE/POD:PATH".to_owned(),
        )),
        (FileSpec::Remote { .. }, FileSpec::Remote { .. }) => Err(CommandError::Usage(
            "one of the two must be a local path: files are not copied from pod to pod".to_owned(),
        )),
    }
}

/// The URL for the side that is in a pod.
async fn url(
    agent: &Agent,
    args: &CpArgs,
    spec: &FileSpec<'_>,
    terminal: &mut Terminal<'_>,
) -> Result<Url, CommandError> {
    let FileSpec::Remote {
        namespace,
        pod,
        path,
    } = spec
    else {
        return Err(CommandError::Usage("a path in a pod is missing".to_owned()));
    };
    let namespace = namespace.or(args.namespace.namespace());
    let pod = find_pod(agent, pod, namespace).await?;
    check_phase(&pod, "copy files of")?;
    let container = containers::choose(&pod, args.container.as_deref(), args.quiet, terminal)?;
    let url = pod_path(&pod, "files").with("container", container);
    Ok(url.with("path", path))
}

async fn download(
    agent: &Agent,
    url: &Url,
    local: &Path,
    quiet: bool,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let destination = Destination::local(local)?;
    let mut stream = agent.open(url).await?;
    let (sender, pieces) = mpsc::channel(PIECES);
    let receiving =
        in_thread(move || destination.receive(StreamReader::new(pieces), Attributes::Restricted))?;
    let mut progress = Progress::new(quiet, None, terminal);
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| {
            io::Error::other(format!("the agent closed the connection: {error:#}"))
        });
        if let Ok(piece) = &piece {
            progress.passed(piece, terminal);
        }
        // The receiver has failed and reports why.
        if sender.send(piece).await.is_err() {
            break;
        }
    }
    drop(sender);
    let received = receiving.await.context("the copy was given up")?;
    progress.end(terminal);
    report(&received?, quiet, terminal);
    Ok(())
}

async fn upload(
    agent: &Agent,
    url: &Url,
    local: &Path,
    quiet: bool,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let source = Source::local(local)?;
    let total = progress::size_of(local);
    let (sender, pieces) = mpsc::channel(PIECES);
    let sending = in_thread(move || source.send(StreamWriter::new(sender)))?;
    let (seen, mut passed) = mpsc::unbounded_channel();
    let mut progress = Progress::new(quiet, total, terminal);
    let answer = agent.upload(Method::PUT, url, Upload::body(pieces, seen));
    let mut answer = std::pin::pin!(answer);
    let answer = loop {
        // Cancel safe; the next iteration continues to wait for the response.
        tokio::select! {
            biased;
            Some(piece) = passed.recv() => progress.passed(&piece, terminal),
            answer = answer.as_mut() => break answer,
        }
    };
    progress.end(terminal);
    // Both sides may report why it failed. If this side can't read, the other side only reports a
    // consequence.
    match sending.await.context("the copy was given up")? {
        Err(error) if !matches!(error, FilesError::Stream(_)) => return Err(error.into()),
        _ => {}
    }
    let answer = answer?;
    let count = |field: &str| answer[field].as_u64().unwrap_or_default();
    let skipped = answer["skipped"].as_array();
    let skipped = skipped.into_iter().flatten().filter_map(Value::as_str);
    let received = Received {
        entries: count("entries"),
        bytes: count("bytes"),
        skipped: skipped.map(str::to_owned).collect(),
    };
    report(&received, quiet, terminal);
    Ok(())
}

fn report(received: &Received, quiet: bool, terminal: &mut Terminal<'_>) {
    for path in &received.skipped {
        if !quiet {
            let path = visible(path);
            terminal.note(&format!(
                "skipped {path}: neither a file, a directory nor a link"
            ));
        }
    }
}

/// Runs blocking work in a thread.
fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<oneshot::Receiver<T>, CommandError> {
    let (done, result) = oneshot::channel();
    let spawned = thread::Builder::new().spawn(move || {
        // The receiver is gone if the command was interrupted.
        let _ = done.send(work());
    });
    spawned.map_err(|error| anyhow!(error).context("cannot start a thread"))?;
    Ok(result)
}
