//! Determines the commit of the build from the available information.

/// The states of the tree, with Kubernetes' words for `gitTreeState`.
pub(crate) const CLEAN: &str = "clean";
/// Something differs from the commit.
pub(crate) const DIRTY: &str = "dirty";
/// Built from a source archive, for which it is unknown whether it was edited.
pub(crate) const ARCHIVE: &str = "archive";
/// Not checked, or there is no checkout.
pub(crate) const UNKNOWN: &str = "unknown";

/// The commit of a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Its hash in lower-case hexadecimal digits, or `unknown`.
    pub(crate) id: String,
    /// When it was committed, in seconds since 1970.
    pub(crate) seconds: Option<i64>,
    /// One of the four states above.
    pub(crate) tree: &'static str,
}

/// The information that is available without git.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    /// `RUBELET_COMMIT`.
    pub(crate) variable: Option<&'a str>,
    /// `SOURCE_DATE_EPOCH`, used with `RUBELET_COMMIT` only.
    pub(crate) epoch: Option<&'a str>,
    /// The content of `commit.txt`, into which `git archive` writes hash and time.
    pub(crate) file: Option<&'a str>,
}

/// The variable takes precedence, then the file of a source archive, then the checkout.
///
/// # Errors
///
/// The variable or the file of an archive does not contain a commit.
pub(crate) fn choose(
    given: Given<'_>,
    checkout: impl FnOnce() -> Option<Commit>,
) -> Result<Commit, String> {
    if let Some(id) = given.variable.filter(|id| !id.is_empty()) {
        return Ok(Commit {
            id: hash(id).ok_or_else(|| format!("RUBELET_COMMIT: `{id}` is not a commit hash"))?,
            seconds: given.epoch.and_then(|epoch| epoch.parse().ok()),
            tree: UNKNOWN,
        });
    }
    if let Some(text) = given.file.map(str::trim)
        && !text.is_empty()
        && !text.starts_with('$')
    {
        let parsed = text.split_once(' ').and_then(|(id, seconds)| {
            Some(Commit {
                id: hash(id)?,
                seconds: Some(seconds.parse().ok()?),
                tree: ARCHIVE,
            })
        });
        return parsed.ok_or_else(|| {
            "commit.txt: expected a commit hash and a time in seconds, as `git archive` writes"
                .to_owned()
        });
    }
    Ok(checkout().unwrap_or_else(|| Commit {
        id: UNKNOWN.to_owned(),
        seconds: None,
        tree: UNKNOWN,
    }))
}

/// `text` if it is a hash of git, of SHA-1 or SHA-256.
pub(crate) fn hash(text: &str) -> Option<String> {
    let digits = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digits && [40, 64].contains(&text.len())).then(|| text.to_owned())
}
