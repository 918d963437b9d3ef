//! The format of a story's file: a title and a description; pods; a script; and, below a line of
//! three dashes, the expected log.
//!
//! ```text
//! A container that fails is started again
//!
//! pod web
//!   containers:
//!   - {name: web, image: app:1}
//!
//! first  container web: exits 1 after 5s; then runs
//! at 20s  remove the manifest
//! until 30s
//! ---
//! 00:00.0 why   the pod has no sandbox
//! ```
//!
//! A pod's line may end with `later` (its manifest is put by the script) and with metadata such as
//! `{uid: a}`; `as NAME` tells apart two pods of one name.

use std::time::Duration;

use super::words::duration;

pub(super) struct Story {
    pub(super) pods: Vec<Manifest>,
    /// Commands that run before the agent starts.
    pub(super) first: Vec<String>,
    /// Commands and their times.
    pub(super) script: Vec<(Duration, String)>,
    pub(super) until: Duration,
    /// The file down to the line of dashes, inclusive.
    pub(super) header: String,
    /// The expected log.
    pub(super) golden: String,
}

/// A pod's manifest.
#[derive(Debug, Clone)]
pub(super) struct Manifest {
    /// Its label in the story.
    pub(super) label: String,
    /// `metadata.name`.
    pub(super) name: String,
    /// Whether the script adds it.
    pub(super) later: bool,
    /// The rest of `metadata`, without braces.
    metadata: String,
    /// The text below `spec:`.
    pub(super) spec: String,
}

impl Manifest {
    fn of_line(line: &str) -> Result<Self, String> {
        let (words, metadata) = match line.split_once('{') {
            Some((words, rest)) => (words, rest.strip_suffix('}').unwrap_or(rest)),
            None => (line, ""),
        };
        let mut words: Vec<&str> = words.split_whitespace().collect();
        let later = words.last() == Some(&"later");
        words.truncate(words.len() - usize::from(later));
        let (name, label) = match words.as_slice() {
            ["pod", name] => (name, name),
            ["pod", name, "as", label] => (name, label),
            _ => {
                return Err(format!(
                    "not `pod NAME [as LABEL] [later] [{{...}}]`: {line}"
                ));
            }
        };
        Ok(Self {
            label: (*label).to_owned(),
            name: (*name).to_owned(),
            later,
            metadata: metadata.to_owned(),
            spec: String::new(),
        })
    }

    /// The complete manifest.
    pub(super) fn text(&self) -> String {
        let Self {
            name,
            metadata,
            spec,
            ..
        } = self;
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {metadata}}}\nspec:\n{spec}")
    }
}

impl Story {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (head, golden) = text.split_once("\n---\n").unwrap_or((text.trim_end(), ""));
        let mut story = Self {
            pods: Vec::new(),
            first: Vec::new(),
            script: Vec::new(),
            until: Duration::ZERO,
            header: format!("{head}\n---\n"),
            golden: golden.to_owned(),
        };
        for line in head.lines() {
            story.line(line)?;
        }
        if story.pods.is_empty() || story.until.is_zero() {
            return Err("a story has pods, and ends with `until TIME`".to_owned());
        }
        let times = story.script.iter().map(|(at, _)| *at);
        if !times.chain([story.until]).is_sorted() {
            return Err("a script goes forward in time".to_owned());
        }
        Ok(story)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let time = |text: &str| duration(text).ok_or_else(|| format!("not a time: {line}"));
        match (word, self.pods.last_mut()) {
            ("pod", _) => self.pods.push(Manifest::of_line(line)?),
            // The title and the description.
            (_, None) => {}
            ("", Some(pod)) => {
                pod.spec.push_str(line);
                pod.spec.push('\n');
            }
            ("first", _) => self.first.push(rest.to_owned()),
            ("at", _) => {
                let (at, what) = rest
                    .split_once(' ')
                    .ok_or_else(|| format!("missing command: {line}"))?;
                self.script.push((time(at)?, what.trim().to_owned()));
            }
            ("until", _) => self.until = time(rest)?,
            _ => return Err(format!("expected `pod`, `first`, `at` or `until`: {line}")),
        }
        Ok(())
    }
}
