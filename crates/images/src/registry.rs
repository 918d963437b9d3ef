//! The client of registries: connections, credentials, redirects, manifests and blobs.
//!
//! A [`RegistrySession`] serves one pull. It tries the hosts that the registry's settings name, one
//! after the other, and without such settings the registry itself. After a failure the next host is
//! tried; a host that cannot be reached is skipped for the rest of the pull. Nothing is retried:
//! back-off is up to the caller.
//!
//! It uses HTTPS. Registries on loopback and those that the settings call insecure may also use
//! unverified certificates or plain HTTP. Credentials go to the host that requests them and, on its
//! challenge, to its token server; a redirect to another host is followed without them.

mod authorize;
mod body;
mod challenge;
mod error_response;
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
pub(crate) use self::{body::ResponseBody, tls::try_certificates, transport::Transport};
use crate::{
    Credentials, Digest, PullError, PullErrorKind, Reference,
    hosts::{self, HostSettings},
    manifest::Descriptor,
};

/// The hosts of a registry, for one pull.
pub(crate) struct RegistrySession {
    registry: String,
    hosts: Vec<Host>,
}

/// A manifest or index, as the registry sent it.
pub(crate) struct RawManifest {
    pub(crate) bytes: Bytes,
    pub(crate) digest: Digest,
    pub(crate) media_type: Option<String>,
}

/// The credentials of a pull, for hosts that request them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OfferedCredentials {
    pub(crate) credentials: Option<Credentials>,
    /// Mirrors of the registry may get the credentials, too.
    pub(crate) to_mirrors: bool,
}

/// Progress through the hosts that may have an object.
#[derive(Default)]
pub(crate) struct HostSearch {
    /// The current host, or the next one.
    at: usize,
    failed: Vec<(String, PullError)>,
}

impl RegistrySession {
    /// Reads the hosts of the registry. Blocks.
    pub(crate) fn open(
        transport: &Arc<Transport>,
        reference: &Reference,
        shown: &OfferedCredentials,
        directories: &[std::path::PathBuf],
    ) -> Result<Self, PullError> {
        let registry = reference.registry();
        let settings = hosts::of_registry(directories, registry)?;
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
        let mut search = HostSearch::default();
        while let Some(host) = self.next(&mut search, expected.is_none()) {
            match host.manifest(tag_or_digest, expected).await {
                Ok(manifest) => return Ok(manifest),
                Err(error) => self.note_failure(&mut search, error),
            }
        }
        Err(self.failure(search))
    }

    /// A small blob, verified.
    pub(crate) async fn small_blob(
        &self,
        descriptor: &Descriptor,
        most: u64,
    ) -> Result<Bytes, PullError> {
        if descriptor.size > most {
            let message = format!(
                "the image configuration has {} bytes, more than {most}",
                descriptor.size
            );
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        let mut search = HostSearch::default();
        while let Some(host) = self.next(&mut search, false) {
            match host.small_blob(descriptor).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => self.note_failure(&mut search, error),
            }
        }
        Err(self.failure(search))
    }

    /// A blob, not verified. A caller that finds it invalid continues with [`Self::try_next_host`].
    pub(crate) async fn blob(
        &self,
        descriptor: &Descriptor,
        search: &mut HostSearch,
    ) -> Result<ResponseBody, PullError> {
        while let Some(host) = self.next(search, false) {
            match host.blob(descriptor).await {
                Ok(body) => return Ok(body),
                Err(error) => self.note_failure(search, error),
            }
        }
        Err(self.failure(std::mem::take(search)))
    }

    /// Asks the hosts to confirm that these credentials may read the blob. Mirrors without the
    /// capability `resolve` do not count: they do not decide about access. A failure means no: the
    /// blob can still be downloaded.
    pub(crate) async fn confirms(&self, descriptor: &Descriptor) -> bool {
        for host in &self.hosts {
            if host.may(true) && host.down().is_none() && host.has(descriptor).await {
                return true;
            }
        }
        false
    }

    /// The current host returned an invalid blob. An error if it is the last one.
    pub(crate) fn try_next_host(
        &self,
        search: &mut HostSearch,
        error: PullError,
    ) -> Result<(), PullError> {
        self.note_failure(search, error);
        match self.next(search, false) {
            Some(_) => Ok(()),
            None => Err(self.failure(std::mem::take(search))),
        }
    }

    /// The next usable host.
    fn next(&self, search: &mut HostSearch, resolves: bool) -> Option<&Host> {
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

    fn note_failure(&self, search: &mut HostSearch, error: PullError) {
        if let Some(host) = self.hosts.get(search.at) {
            if self.hosts.len() > 1 {
                let (host, error) = (host.name(), ErrorChain(&error));
                tracing::warn!(registry = self.registry, host, %error, "Registry host failed, trying the next one");
            }
            host.note(&error);
            search.failed.push((host.name(), error));
        }
        search.at += 1;
    }

    /// The error when all hosts failed: the errors of each. The kind is that of the last one.
    fn failure(&self, search: HostSearch) -> PullError {
        let mut failed = search.failed;
        let Some((name, last)) = failed.pop() else {
            let message = format!(
                "no host of {} has the capabilities for this request",
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
        let message = format!("all hosts of the registry failed: {}", said.join("; "));
        PullError::new(kind, message)
    }
}
