//! `rubelet config`: what `rubelet run` would use, without running anything.

mod files;

use rubelet_config::{Flags, Resolved, Sources, parse_flags, resolve};
use serde_json::{Value, json};

pub use self::files::ConfigFiles;
use super::{
    failure::CommandError,
    print::{self, Form},
    terminal::Terminal,
};

/// Checks or shows the configuration
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum ConfigCommand {
    /// Check a configuration: exit code 0 if `rubelet run` would accept it
    #[command(after_help = "Example:\n  rubelet config validate --config /etc/rubelet/config.yaml")]
    Validate(SourceArgs),
    /// Show the configuration with all defaults
    #[command(
        after_help = "Example:\n  rubelet config show --config-dir /etc/rubelet/conf.d --origin"
    )]
    Show(ShowArgs),
}

#[derive(Debug, Clone, clap::Args)]
struct SourceArgs {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Directory of drop-in files (*.conf)
    #[arg(long, value_name = "DIRECTORY")]
    config_dir: Option<String>,
    /// Any flags of `rubelet run`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    flags: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
struct ShowArgs {
    /// Show where each value came from
    #[arg(long)]
    origin: bool,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    source: SourceArgs,
}

pub(super) fn run(args: ConfigArgs, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
    match args.command {
        ConfigCommand::Validate(args) => validate(&args, terminal),
        ConfigCommand::Show(mut args) => {
            args.take_own_flags()?;
            show(&args, terminal)
        }
    }
}

fn validate(args: &SourceArgs, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
    let (files, resolved) = resolved(args, terminal)?;
    if let Some(missing) = resolved.not_yet() {
        terminal.note(&format!("not yet: {missing}"));
    }
    terminal.print(format!("{}: ok\n", files.names().join(", ")))
}

fn show(args: &ShowArgs, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
    let (_, resolved) = resolved(&args.source, terminal)?;
    let form = args.output.unwrap_or(Form::Yaml);
    terminal.print(match (args.origin, args.output) {
        (false, _) => form.of(&resolved.to_value()),
        (true, None) => origin_table(&resolved),
        (true, Some(_)) => form.of(&origins(&resolved)),
    })
}

/// Reads and validates the configuration. Warnings, and the location of an error, go to stderr.
fn resolved(
    args: &SourceArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(ConfigFiles, Resolved), CommandError> {
    let flags = args.kubelet_flags()?;
    let files = ConfigFiles::read(&flags)?;
    let sources = Sources {
        file: files.file(),
        drop_ins: &files.drop_ins,
        flags: &flags,
    };
    let resolved = resolve(sources).map_err(|error| {
        if let Some(snippet) = &error.snippet {
            terminal.note(snippet.trim_end());
        }
        CommandError::from(error)
    })?;
    for warning in &resolved.warnings {
        terminal.note(&format!("warning: {warning}"));
    }
    Ok((files, resolved))
}

impl ShowArgs {
    /// Options of this command may also follow the first flag of `rubelet run`.
    fn take_own_flags(&mut self) -> Result<(), CommandError> {
        let mut rest = std::mem::take(&mut self.source.flags).into_iter();
        while let Some(flag) = rest.next() {
            let (name, inline) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag.as_str(), None),
            };
            match (name, &inline) {
                ("--origin", None) => self.origin = true,
                ("-o" | "--output", _) => {
                    let value = inline.or_else(|| rest.next()).unwrap_or_default();
                    self.output = Some(match value.as_str() {
                        "yaml" => Form::Yaml,
                        "json" => Form::Json,
                        other => {
                            let message = format!("{name}: {other:?} is neither yaml nor json");
                            return Err(CommandError::Usage(message));
                        }
                    });
                }
                _ => self.source.flags.push(flag),
            }
        }
        Ok(())
    }
}

impl SourceArgs {
    fn kubelet_flags(&self) -> Result<Flags, CommandError> {
        let named = [("config", &self.config), ("config-dir", &self.config_dir)];
        let named = named
            .into_iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| format!("--{name}={value}")));
        let flags = parse_flags(named.chain(self.flags.iter().cloned()));
        let flags = flags.map_err(|error| CommandError::Usage(error.to_string()))?;
        if flags.help() || flags.version() {
            let message = "--help and --version must stand before the flags of `rubelet run`";
            return Err(CommandError::Usage(message.to_owned()));
        }
        Ok(flags)
    }
}

/// Field, value and origin, one row each.
fn origin_table(resolved: &Resolved) -> String {
    let heading = ["FIELD", "VALUE", "ORIGIN"].map(str::to_owned).to_vec();
    let rows = resolved.leaves().into_iter().map(|leaf| {
        let value = match &leaf.value {
            Value::String(text) if !text.is_empty() => text.clone(),
            other => other.to_string(),
        };
        vec![leaf.path, value, leaf.origin.to_string()]
    });
    print::table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>())
}

fn origins(resolved: &Resolved) -> Value {
    let leaves = resolved.leaves().into_iter().map(|leaf| {
        json!({ "field": leaf.path, "value": leaf.value, "origin": leaf.origin.to_string() })
    });
    leaves.collect()
}
