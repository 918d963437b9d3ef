//! `rubelet image`: the images of this machine's container runtime.

mod backend;
mod credentials;
mod list;
mod load;
mod removal;
mod users;

use anyhow::anyhow;
use rubelet_cri::{PLATFORM, v1};
use rubelet_images::Platform;
use serde_json::{Value, json};

use self::{
    backend::Backend, credentials::CredentialArgs, list::ListOutput, load::LoadArgs,
    removal::RemoveArgs,
};
use super::{
    agent::Agent,
    binary::Binary,
    failure::CommandError,
    print::document,
    terminal::{Terminal, visible},
};

/// Manage images
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ImageArgs {
    #[command(flatten)]
    place: backend::PlaceArgs,
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum ImageCommand {
    /// List images
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    /// Pull images from their registries
    #[command(
        after_help = "Examples:\n  rubelet image pull docker.io/library/busybox:1.37\n  rubelet image pull --authfile ~/.docker/config.json registry.example.com/team/app:1"
    )]
    Pull(PullArgs),
    /// Load images from files: docker archives and OCI layouts, as `docker save` or `skopeo copy`
    /// write them
    #[command(
        after_help = "Examples:\n  rubelet image load busybox.tar\n  docker save busybox | rubelet image load"
    )]
    Load(LoadArgs),
    /// Remove names of images; an image is removed with its last name
    #[command(
        visible_alias = "remove",
        after_help = "Example:\n  rubelet image rm busybox:1.37"
    )]
    Rm(RemoveArgs),
    /// Show images in detail, as JSON
    Inspect(NamesArgs),
}

#[derive(Debug, Clone, clap::Args)]
struct LsArgs {
    /// Only images of this name
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print image IDs only
    #[arg(short, long)]
    quiet: bool,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<ListOutput>,
}

#[derive(Debug, Clone, clap::Args)]
struct PullArgs {
    /// Names of the images, such as `busybox:1.37`
    #[arg(value_name = "IMAGE", required = true)]
    names: Vec<String>,
    /// Pull for another machine than this one: OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT. The image
    /// takes the name from the one that runs here
    #[arg(long)]
    platform: Option<Platform>,
    #[command(flatten)]
    credentials: CredentialArgs,
}

#[derive(Debug, Clone, clap::Args)]
struct NamesArgs {
    /// Names or IDs of images
    #[arg(value_name = "IMAGE", required = true)]
    names: Vec<String>,
}

pub(super) async fn run(
    agent: &Agent,
    args: ImageArgs,
    binary: Binary,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let backend = Backend::open(&args.place, agent, binary).await?;
    let only_looks = matches!(args.command, ImageCommand::Ls(_) | ImageCommand::Inspect(_));
    if let Some(place) = backend.place().filter(|_| !only_looks) {
        terminal.note(&place);
    }
    match args.command {
        ImageCommand::Ls(args) => ls(&backend, &args, terminal).await,
        ImageCommand::Pull(args) => pull(&backend, &args, terminal).await,
        ImageCommand::Load(args) => load::run(&backend, &args, terminal).await,
        ImageCommand::Rm(args) => removal::run(&backend, &args, terminal).await,
        ImageCommand::Inspect(args) => inspect(&backend, &args.names, terminal).await,
    }
}

fn spec(name: &str) -> Option<v1::ImageSpec> {
    Some(v1::ImageSpec {
        image: name.to_owned(),
        ..Default::default()
    })
}

/// Runs an operation for each name; a failure does not stop the others.
async fn each(
    names: &[String],
    terminal: &mut Terminal<'_>,
    mut act: impl AsyncFnMut(&str, &mut Terminal<'_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut failed = None;
    for name in names {
        match act(name, terminal).await {
            Ok(()) => {}
            Err(CommandError::Error(error)) => {
                if let Some(before) = failed.replace(error) {
                    terminal.error(&format!("{before:#}"));
                }
            }
            Err(other) => return Err(other),
        }
    }
    failed.map_or(Ok(()), |error| Err(CommandError::Error(error)))
}

async fn ls(
    backend: &Backend,
    args: &LsArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
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
) -> Result<(), CommandError> {
    let logins = args.credentials.read()?;
    if args.platform.is_some()
        && let Some(other) = backend.other_runtime().await?
    {
        return Err(anyhow!(
            "{other} cannot be told a platform; only Rubelet's own runtime can (containerd has `ctr \
             images pull --platform`)"
        )
        .into());
    }
    each(&args.names, terminal, async |name, terminal| {
        let mut image = spec(name);
        if let (Some(image), Some(platform)) = (&mut image, &args.platform) {
            image
                .annotations
                .insert(PLATFORM.to_owned(), platform.to_string());
        }
        let request = v1::PullImageRequest {
            image,
            auth: logins.of(name)?,
            ..Default::default()
        };
        let pulled = backend.images.pull_image(request).await;
        let pulled = pulled.map_err(|error| backend::in_its_words(error, "pull", name))?;
        terminal.print(format!("{}\n", visible(&pulled.image_ref)))
    })
    .await
}

async fn inspect(
    backend: &Backend,
    names: &[String],
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
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

/// An image's status as JSON; JSON values in the runtime's `info` are decoded.
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
