//! The client of registries: connections, credentials, redirects, manifests and blobs.
//!
//! A [`Session`] serves one pull. It asks the hosts that the registry's settings name, one after the
//! other, and without such settings the registry itself. A host that fails gives way to the next
//! one; if it can't be reached, for the rest of the pull. Nothing is asked of the same host again:
//! back-off is the caller's.
//!
//! It speaks HTTPS, to registries on loopback and those that the settings call insecure also with any
//! certificate or plain HTTP, whichever they answer to. Credentials go to the host that asks for them
//! and, where it says so, to its token server; a redirect to another host is followed without them.

mod answer;
mod authorize;
mod body;
mod challenge;
mod hop;
mod host;
mod origin;
mod peer;
mod proxy;
mod redirect;
mod resolve;
mod tls;
mod transport;

use std::sync::Arc;

use bytes::Bytes;
use rubelet_base::ErrorChain;

use self::host::Host;
pub(crate) use self::{body::Body, tls::try_certificates, transport::Transport};
use crate::{
    Credentials, Digest, PullError, PullErrorKind, Reference,
    hosts::{self, HostSettings},
    manifest::Descriptor,
};

/// One pull's view of a registry.
pub(crate) struct Session {
    registry: String,
    hosts: Vec<Host>,
}

/// A manifest or index as the registry gave it.
pub(crate) struct RawManifest {
    pub(crate) bytes: Bytes,
    pub(crate) digest: Digest,
    pub(crate) media_type: Option<String>,
}

/// What a pull shows to hosts that ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shown {
    pub(crate) credentials: Option<Credentials>,
    /// Mirrors of the registry may see the credentials, too.
    pub(crate) to_mirrors: bool,
}

/// How far the search for one thing is.
#[derive(Default)]
pub(crate) struct Search {
    /// The host that is asked now, or next.
    at: usize,
    failed: Vec<(String, PullError)>,
}

impl Session {
    /// Finds out where images of the registry come from. Blocks.
    pub(crate) fn open(
        transport: &Arc<Transport>,
        reference: &Reference,
        shown: &Shown,
        folders: &[std::path::PathBuf],
    ) -> Result<Self, PullError> {
        let registry = reference.registry();
        let settings = hosts::of_registry(folders, registry)?;
        let settings = settings.unwrap_or_else(|| vec![HostSettings::default()]);
        let hosts = settings.iter().enumerate().map(|(at, host)| {
            let is_last = at + 1 == settings.len();
            Host::new(transport, host, reference, shown, is_last)
        });
        Ok(Self {
            registry: registry.to_owned(),
            hosts: hosts.collect::<Result<_, _>>()?,
        })
    }

    /// The manifest or index with this tag or digest.
    pub(crate) async fn manifest(
        &self,
        tag_or_digest: &str,
        expected: Option<&Digest>,
    ) -> Result<RawManifest, PullError> {
        let mut search = Search::default();
        while let Some(host) = self.next(&mut search, expected.is_none()) {
            match host.manifest(tag_or_digest, expected).await {
                Ok(manifest) => return Ok(manifest),
                Err(error) => self.pass_over(&mut search, error),
            }
        }
        Err(self.failure(search))
    }

    /// All of a small blob, checked.
    pub(crate) async fn small_blob(
        &self,
        descriptor: &Descriptor,
        most: u64,
    ) -> Result<Bytes, PullError> {
        if descriptor.size > most {
            let message = format!(
                "the image's configuration has {} bytes, more than {most}",
                descriptor.size
            );
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        let mut search = Search::default();
        while let Some(host) = self.next(&mut search, false) {
            match host.small_blob(descriptor).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => self.pass_over(&mut search, error),
            }
        }
        Err(self.failure(search))
    }

    /// A blob, unchecked. Whoever finds it to be bad goes on with [`Self::give_way`].
    pub(crate) async fn blob(
        &self,
        descriptor: &Descriptor,
        search: &mut Search,
    ) -> Result<Body, PullError> {
        while let Some(host) = self.next(search, false) {
            match host.blob(descriptor).await {
                Ok(body) => return Ok(body),
                Err(error) => self.pass_over(search, error),
            }
        }
        Err(self.failure(std::mem::take(search)))
    }

    /// Whether a host says that it would give this blob to who asks. A mirror that may not resolve
    /// tags has no say in who may have what. Trouble is no error: the blob can still be asked for.
    pub(crate) async fn confirms(&self, descriptor: &Descriptor) -> bool {
        for host in &self.hosts {
            if host.may(true) && host.down().is_none() && host.has(descriptor).await {
                return true;
            }
        }
        false
    }

    /// The host of a search turned out to be no good. An error if nobody is left to be asked.
    pub(crate) fn give_way(&self, search: &mut Search, error: PullError) -> Result<(), PullError> {
        self.pass_over(search, error);
        match self.next(search, false) {
            Some(_) => Ok(()),
            None => Err(self.failure(std::mem::take(search))),
        }
    }

    /// The host that is to be asked now.
    fn next(&self, search: &mut Search, resolves: bool) -> Option<&Host> {
        while let Some(host) = self.hosts.get(search.at) {
            if host.may(resolves) {
                match host.down() {
                    None => return Some(host),
                    Some(error) => search.failed.push((host.name(), error)),
                }
            }
            search.at += 1;
        }
        None
    }

    fn pass_over(&self, search: &mut Search, error: PullError) {
        if let Some(host) = self.hosts.get(search.at) {
            if self.hosts.len() > 1 {
                let (host, error) = (host.name(), ErrorChain(&error));
                tracing::warn!(registry = self.registry, host, %error, "host of images passed over");
            }
            host.note(&error);
            search.failed.push((host.name(), error));
        }
        search.at += 1;
    }

    /// What to say when nobody gave what was searched for: what each host said. The last one has the
    /// say in what it means.
    fn failure(&self, search: Search) -> PullError {
        let mut failed = search.failed;
        let Some((name, last)) = failed.pop() else {
            let message = format!(
                "no host of {} may be asked for it: each has capabilities without it",
                self.registry
            );
            return PullError::new(PullErrorKind::Internal, message);
        };
        if self.hosts.len() == 1 {
            return last;
        }
        let kind = last.kind();
        failed.push((name, last));
        let said = failed.iter().map(|(name, error)| {
            let text = ErrorChain(error).to_string();
            match text.contains(name.as_str()) {
                true => text,
                false => format!("{name}: {text}"),
            }
        });
        let said: Vec<String> = said.collect();
        let message = format!(
            "none of the hosts that were asked gives it: {}",
            said.join("; ")
        );
        PullError::new(kind, message)
    }
}
