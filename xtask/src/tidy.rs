//! The rules of the code base that the compiler does not check.

mod assertions;
mod documents;
mod edges;
mod excerpts;
mod features;
mod figures;
mod files;
mod functions;
mod import_cycles;
mod layers;
mod lines;
mod manifests;
mod purity;
mod sizes;
mod type_names;
mod used_paths;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace;
use files::File;
use import_cycles::SourceFile;
use used_paths::UsedPaths;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// The file, relative to the root of the workspace.
    file: String,
    /// The line number, 0 if the finding is about the whole file.
    line: usize,
    /// The violated rule.
    rule: String,
    /// Advice on how to fix it.
    remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            rule,
            remedy,
        } = self;
        match line {
            0 => write!(f, "{file}: {rule}\n    {remedy}"),
            line => write!(f, "{file}:{line}: {rule}\n    {remedy}"),
        }
    }
}

/// Checks everything below `root`; returns an error if a rule is violated.
pub(crate) fn run(root: &Path) -> Result<()> {
    let files = files::all(root)?;
    let (mut findings, sources) = check_each(&files);
    findings.extend(layers::check(&workspace::metadata(root)?));
    findings.extend(features::check(root)?);
    findings.extend(documents::check(&files));
    findings.extend(figures::check(&files));
    findings.extend(excerpts::check(&files));
    findings.extend(sizes::check(&files));
    findings.extend(assertions::check(&files));
    findings.extend(import_cycles::check(sources));
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, no findings", files.len());
        return Ok(());
    }
    bail!("{} findings in {} files", findings.len(), files.len())
}

/// Checks what is a matter of one file, on all processors. Returns the source files in the order of their paths, too: to
/// parse them takes most of the time.
fn check_each(files: &[File]) -> (Vec<Finding>, Vec<SourceFile<'_>>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads = (0..cores).map(|first| {
            scope.spawn(move || {
                let (mut findings, mut sources) = (Vec::new(), Vec::new());
                for file in files.iter().skip(first).step_by(cores) {
                    sources.extend(check_one(file, &mut findings));
                }
                (findings, sources)
            })
        });
        // All of them run before the first is waited for.
        let threads: Vec<_> = threads.collect();
        let (mut findings, mut sources) = (Vec::new(), Vec::new());
        for thread in threads {
            let found = thread.join();
            let found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            findings.extend(found.0);
            sources.extend(found.1);
        }
        sources.sort_by_key(|source| source.path);
        (findings, sources)
    })
}

fn check_one<'a>(file: &'a File, findings: &mut Vec<Finding>) -> Option<SourceFile<'a>> {
    let File { path, text } = file;
    findings.extend(files::check_name(path));
    findings.extend(lines::check(path, text));
    findings.extend(manifests::check(path, text));
    findings.extend(words::check(path, text));
    // The compiler reports invalid Rust better.
    let is_ours = path.ends_with(".rs") && !files::is_generated(path);
    let syntax = is_ours.then(|| syn::parse_file(text).ok())??;
    findings.extend(functions::check(path, &syntax));
    findings.extend(type_names::check(path, &syntax));
    // What a test uses is its own matter.
    let uses = path.contains("/src/").then(|| UsedPaths::of(&syntax))?;
    findings.extend(purity::check(path, &uses));
    SourceFile::new(path, uses)
}
