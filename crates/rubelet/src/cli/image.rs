//! `rubelet image`: the images of this machine's container runtime.

mod backend;
mod credentials;
mod list;

use std::path::PathBuf;

use rubelet_cri::v1;
use serde_json::{Value, json};

use self::{backend::Backend, credentials::CredentialArgs, list::ListOutput};
use super::{
    agent::Agent,
    failure::Failure,
    print::document,
    terminal::{Terminal, visible},
};

/// Look after the images that containers are made from
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ImageArgs {
    #[command(flatten)]
    place: backend::PlaceArgs,
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum ImageCommand {
    /// List the images
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    /// Pull images from their registries
    #[command(after_help = "Example:\n  rubelet image pull docker.io/library/busybox:1.37")]
    Pull(PullArgs),
    /// Load images from files: docker archives and OCI layouts, as `docker save` or `skopeo copy`
    /// write them
    #[command(after_help = "Example:\n  rubelet image load busybox.tar")]
    Load(LoadArgs),
    /// Remove images
    Rm(NamesArgs),
    /// Show everything about images, as JSON
    Inspect(NamesArgs),
}

#[derive(Debug, Clone, clap::Args)]
struct LsArgs {
    /// Only images of this name
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print identifiers only
    #[arg(short, long)]
    quiet: bool,
    /// Form of the output
    #[arg(short, long, value_enum)]
    output: Option<ListOutput>,
}

#[derive(Debug, Clone, clap::Args)]
struct PullArgs {
    /// Names of the images, such as `busybox:1.37`
    #[arg(value_name = "IMAGE", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    credentials: CredentialArgs,
}

#[derive(Debug, Clone, clap::Args)]
struct LoadArgs {
    /// Archives or folders
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
struct NamesArgs {
    /// Names or identifiers of images
    #[arg(value_name = "IMAGE", required = true)]
    names: Vec<String>,
}

pub(super) async fn run(
    agent: &Agent,
    args: ImageArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    let backend = Backend::open(&args.place, agent).await?;
    match args.command {
        ImageCommand::Ls(args) => ls(&backend, &args, terminal).await,
        ImageCommand::Pull(args) => pull(&backend, &args, terminal).await,
        ImageCommand::Load(args) => load(&backend, &args, terminal).await,
        ImageCommand::Rm(args) => {
            each(&args.names, terminal, async |name, terminal| {
                remove(&backend, name, terminal).await
            })
            .await
        }
        ImageCommand::Inspect(args) => inspect(&backend, &args.names, terminal).await,
    }
}

fn spec(name: &str) -> Option<v1::ImageSpec> {
    Some(v1::ImageSpec {
        image: name.to_owned(),
        ..Default::default()
    })
}

/// Does something for each name; one that fails doesn't keep the others from it.
async fn each(
    names: &[String],
    terminal: &mut Terminal<'_>,
    mut act: impl AsyncFnMut(&str, &mut Terminal<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failed = None;
    for name in names {
        match act(name, terminal).await {
            Ok(()) => {}
            Err(Failure::Error(error)) => {
                if let Some(before) = failed.replace(error) {
                    terminal.error(&format!("{before:#}"));
                }
            }
            Err(other) => return Err(other),
        }
    }
    failed.map_or(Ok(()), |error| Err(Failure::Error(error)))
}

async fn ls(backend: &Backend, args: &LsArgs, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
    let filter = args
        .name
        .as_deref()
        .map(|name| v1::ImageFilter { image: spec(name) });
    let request = v1::ListImagesRequest { filter };
    let answer = backend.images.list_images(request).await?;
    let mut images = answer.images;
    if images.is_empty() && args.output.is_none_or(|form| form == ListOutput::Wide) {
        terminal.note("No images found.");
    }
    images.sort_by(|a, b| (&a.repo_tags, &a.id).cmp(&(&b.repo_tags, &b.id)));
    terminal.print(match args.quiet {
        true => images
            .iter()
            .map(|image| format!("{}\n", image.id))
            .collect(),
        false => list::render(&images, args.output),
    })
}

async fn pull(
    backend: &Backend,
    args: &PullArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    let auth = args.credentials.read()?;
    each(&args.names, terminal, async |name, terminal| {
        let request = v1::PullImageRequest {
            image: spec(name),
            auth: auth.clone(),
            ..Default::default()
        };
        let pulled = backend.images.pull_image(request).await?;
        terminal.print(format!("{}\n", visible(&pulled.image_ref)))
    })
    .await
}

async fn load(
    backend: &Backend,
    args: &LoadArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    let names: Vec<String> = args
        .files
        .iter()
        .map(|file| file.to_string_lossy().into_owned())
        .collect();
    each(&names, terminal, async |file, terminal| {
        // The runtime may have another working folder.
        let path = std::path::absolute(file)?;
        let loaded = backend.load(&path).await?;
        let lines = loaded.iter().map(|name| format!("{}\n", visible(name)));
        terminal.print(lines.collect::<String>())
    })
    .await
}

async fn remove(backend: &Backend, name: &str, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
    let image = backend.find(name, false).await?.image.unwrap_or_default();
    let request = v1::RemoveImageRequest { image: spec(name) };
    backend.images.remove_image(request).await?;
    let named = image.repo_tags.first().unwrap_or(&image.id);
    terminal.print(format!("{}\n", visible(named)))
}

async fn inspect(
    backend: &Backend,
    names: &[String],
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
    let mut all = Vec::new();
    let result = each(names, terminal, async |name, _| {
        let found = backend.find(name, true).await?;
        all.push(details(&found));
        Ok(())
    })
    .await;
    if !all.is_empty() {
        terminal.print(document(&Value::Array(all), false))?;
    }
    result
}

/// An image's status as JSON; what the runtime adds in JSON of its own stands beside it.
fn details(found: &v1::ImageStatusResponse) -> Value {
    let image = found.image.clone().unwrap_or_default();
    let mut value = json!({
        "id": image.id,
        "repoTags": image.repo_tags,
        "repoDigests": image.repo_digests,
        "size": image.size,
        "user": image.uid.map_or(image.username, |uid| uid.value.to_string()),
        "pinned": image.pinned,
    });
    for (key, text) in &found.info {
        let inner = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
        value[key] = inner;
    }
    value
}
