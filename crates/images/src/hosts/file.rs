//! Parses `hosts.toml`, with the meaning of containerd's `docs/hosts.md`. Errors name the line and
//! the unsupported field.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use rubelet_base::duration::parse_go;
use toml_edit::{Document, Item, TableLike, Value};

use super::{Capabilities, HostSettings, HostUrl, NamedFile};

/// An error in a `hosts.toml`, with its line.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}: {message}", file.display())]
pub(super) struct HostsFileError {
    file: PathBuf,
    line: usize,
    message: String,
}

/// The hosts of a file in their order, the server last.
pub(super) fn parse(text: &str, file: &Path) -> Result<Vec<HostSettings>, HostsFileError> {
    let reader = Reader { text, file };
    let document =
        Document::parse(text).map_err(|error| reader.error_at(error.span(), error.message()))?;
    let mut hosts = Vec::new();
    if let Some(item) = document.get("host") {
        let table = item
            .as_table_like()
            .ok_or_else(|| reader.wrong("host", item, "must be tables such as [host.\"URL\"]"))?;
        for (url, item) in table.iter() {
            let field = format!("host.{url:?}");
            let settings = item
                .as_table_like()
                .ok_or_else(|| reader.wrong(&field, item, "must be a table"))?;
            let mut host = reader.host(settings, &field)?;
            host.url = Some(reader.url(url, settings, &field, item.span())?);
            hosts.push(host);
        }
    }
    let mut server = reader.host(document.as_table(), "")?;
    if let Some(item) = document.get("server") {
        let url = reader.text(item.as_value(), "server", item)?;
        if !url.is_empty() {
            server.url = Some(reader.url(url, document.as_table(), "server", item.span())?);
        }
    }
    hosts.push(server);
    Ok(hosts)
}

struct Reader<'a> {
    text: &'a str,
    file: &'a Path,
}

impl Reader<'_> {
    /// The settings of a host; `field` is empty for those of the server.
    fn host(&self, table: &dyn TableLike, field: &str) -> Result<HostSettings, HostsFileError> {
        let mut settings = HostSettings::default();
        for (key, item) in table.iter() {
            let name = match field {
                "" => key.to_owned(),
                field => format!("{field}.{key}"),
            };
            match key {
                "capabilities" => settings.capabilities = self.capabilities(item, &name)?,
                "ca" => {
                    let paths = self.texts(item, &name)?.into_iter();
                    let paths = paths.map(|path| self.named(path, item, &name));
                    settings.authorities = paths.collect();
                }
                "client" => settings.client = self.client(item, &name)?,
                "skip_verify" => settings.skip_verify = Some(self.bool(item, &name)?),
                "override_path" => _ = self.bool(item, &name)?,
                "header" => settings.headers = self.headers(item, &name)?,
                "dial_timeout" => {
                    let text = self.text(item.as_value(), &name, item)?;
                    let wrong = |error: &dyn fmt::Display| self.wrong(&name, item, error);
                    let timeout = parse_go(text).map_err(|error| wrong(&error))?;
                    if timeout.is_zero() {
                        return Err(wrong(&"must be more than 0s"));
                    }
                    settings.dial_timeout = Some(timeout);
                }
                "server" | "host" if field.is_empty() => {}
                "server" => {
                    let why = "must stand above the first [host.…], where it is the file's server";
                    return Err(self.wrong(&name, item, why));
                }
                _ => {
                    let why = "unknown field; expected server, host, capabilities, ca, client, \
                               skip_verify, header, override_path or dial_timeout";
                    return Err(self.wrong(&name, item, why));
                }
            }
        }
        Ok(settings)
    }

    /// The root of an API. Without a scheme it is HTTPS.
    fn url(
        &self,
        text: &str,
        settings: &dyn TableLike,
        field: &str,
        span: Option<Range<usize>>,
    ) -> Result<HostUrl, HostsFileError> {
        let full = match text.contains("://") {
            true => text.to_owned(),
            false => format!("https://{text}"),
        };
        let parsed: Option<http::Uri> = full.parse().ok();
        let parsed = parsed.filter(|url| {
            let authority = url.authority().map(http::uri::Authority::as_str);
            matches!(url.scheme_str(), Some("http" | "https"))
                && url.query().is_none()
                && authority.is_some_and(|name| !name.contains('@'))
        });
        let (Some(url), false) = (parsed, full.contains('#')) else {
            let message = format!("{field}: {text:?} is not the URL of a registry host");
            return Err(self.error_at(span, &message));
        };
        let parts = url.path().split('/').filter(|part| !part.is_empty());
        let mut path: String = parts.map(|part| format!("/{part}")).collect();
        let overrides = settings.get("override_path").and_then(Item::as_bool);
        if overrides != Some(true) && !path.ends_with("/v2") {
            path.push_str("/v2");
        }
        let authority = url.authority().map(|authority| authority.as_str());
        Ok(HostUrl {
            https: url.scheme_str() == Some("https"),
            authority: authority.unwrap_or_default().to_ascii_lowercase(),
            path,
        })
    }

    fn capabilities(&self, item: &Item, field: &str) -> Result<Capabilities, HostsFileError> {
        let array = item.as_array();
        let array = array.ok_or_else(|| self.wrong(field, item, "must be a list"))?;
        if array.is_empty() {
            return Ok(Capabilities::default());
        }
        let mut found = Capabilities {
            pull: false,
            resolve: false,
        };
        for value in array {
            match self.text(Some(value), field, item)? {
                "pull" => found.pull = true,
                "resolve" => found.resolve = true,
                // This client never pushes.
                "push" | "referrers" => {}
                other => {
                    let why = format!(
                        "unknown capability {other:?}; use pull, resolve, push or referrers"
                    );
                    return Err(self.wrong(field, item, why));
                }
            }
        }
        Ok(found)
    }

    /// `"both"`, `["both"]` or `[["certificate", "key"]]`.
    fn client(
        &self,
        item: &Item,
        field: &str,
    ) -> Result<Option<(NamedFile, NamedFile)>, HostsFileError> {
        let pair = match item.as_array() {
            None => [self.text(item.as_value(), field, item)?, ""],
            Some(array) => {
                let mut values = array.iter();
                let Some(value) = values.next() else {
                    return Ok(None);
                };
                if values.next().is_some() {
                    let why =
                        "has several certificates, but only one client certificate is supported";
                    return Err(self.wrong(field, item, why));
                }
                match value.as_array() {
                    None => [self.text(Some(value), field, item)?, ""],
                    Some(pair) if pair.len() == 2 => [
                        self.text(pair.get(0), field, item)?,
                        self.text(pair.get(1), field, item)?,
                    ],
                    Some(_) => {
                        let why = "must be pairs of a certificate and its key";
                        return Err(self.wrong(field, item, why));
                    }
                }
            }
        };
        let key = if pair[1].is_empty() { pair[0] } else { pair[1] };
        let named = |path| self.named(path, item, field);
        Ok(Some((named(pair[0]), named(key))))
    }

    fn headers(&self, item: &Item, field: &str) -> Result<HeaderMap, HostsFileError> {
        let table = item.as_table_like();
        let table = table.ok_or_else(|| self.wrong(field, item, "must be a table"))?;
        let mut headers = HeaderMap::new();
        for (key, item) in table.iter() {
            let field = format!("{field}.{key}");
            let name = HeaderName::from_bytes(key.as_bytes())
                .map_err(|_| self.wrong(&field, item, "is not a valid header name"))?;
            for text in self.texts(item, &field)? {
                let mut value = HeaderValue::from_str(text).map_err(|_| {
                    self.wrong(
                        &field,
                        item,
                        "has characters that are not allowed in a header",
                    )
                })?;
                value.set_sensitive(true);
                headers.append(&name, value);
            }
        }
        Ok(headers)
    }

    fn bool(&self, item: &Item, field: &str) -> Result<bool, HostsFileError> {
        item.as_bool()
            .ok_or_else(|| self.wrong(field, item, "must be true or false"))
    }

    /// A string, or a list of strings.
    fn texts<'i>(&self, item: &'i Item, field: &str) -> Result<Vec<&'i str>, HostsFileError> {
        match item.as_array() {
            None => Ok(vec![self.text(item.as_value(), field, item)?]),
            Some(array) => {
                let texts = array.iter();
                texts
                    .map(|value| self.text(Some(value), field, item))
                    .collect()
            }
        }
    }

    fn text<'v>(
        &self,
        value: Option<&'v Value>,
        field: &str,
        item: &Item,
    ) -> Result<&'v str, HostsFileError> {
        value
            .and_then(Value::as_str)
            .ok_or_else(|| self.wrong(field, item, "must be a string"))
    }

    /// A file; a relative path is relative to the directory of this file.
    fn named(&self, path: &str, item: &Item, field: &str) -> NamedFile {
        let directory = self.file.parent().unwrap_or(Path::new(""));
        let line = self.line(item.span());
        NamedFile {
            path: directory.join(path),
            named_at: format!("{}:{line}: {field}", self.file.display()),
        }
    }

    fn wrong(&self, field: &str, item: &Item, why: impl fmt::Display) -> HostsFileError {
        self.error_at(item.span(), &format!("{field}: {why}"))
    }

    fn error_at(&self, span: Option<Range<usize>>, message: &str) -> HostsFileError {
        HostsFileError {
            file: self.file.to_owned(),
            line: self.line(span),
            // The parser's own messages may have several lines.
            message: message.trim().replace('\n', ", "),
        }
    }

    fn line(&self, span: Option<Range<usize>>) -> usize {
        let before = span.and_then(|span| self.text.get(..span.start));
        before.map_or(1, |before| before.matches('\n').count() + 1)
    }
}
