//! TLS towards registries: certificate authorities and client certificates.

use std::{path::Path, sync::Arc};

use rubelet_tls::{AcceptAnyServer, client_config};
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use crate::{
    PullError, PullErrorKind,
    hosts::{HostSettings, NamedFile},
};

/// A client certificate and its key.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The authorities of the system and those of `extra`.
pub(super) fn roots(extra: Option<&Path>) -> Result<RootCertStore, PullError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra {
        add(&mut roots, path).map_err(|cause| {
            let message = format!(
                "cannot read the certificate authorities of registries: {}",
                path.display()
            );
            PullError::because(PullErrorKind::Internal, message, cause)
        })?;
    }
    Ok(roots)
}

/// Adds the authorities of a file that a host's settings name.
pub(super) fn add_named(roots: &mut RootCertStore, file: &NamedFile) -> Result<(), PullError> {
    add(roots, &file.path).map_err(|cause| unusable(file, "certificate authorities", cause))
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), Cause> {
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(path)? {
        roots.add(certificate?)?;
    }
    match roots.len() > before {
        true => Ok(()),
        false => Err("no certificate found".into()),
    }
}

/// Reads a client certificate and its key.
pub(super) fn identity((certificate, key): &(NamedFile, NamedFile)) -> Result<Identity, PullError> {
    let chain = CertificateDer::pem_file_iter(&certificate.path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(Cause::from)
        .and_then(|chain| match chain.is_empty() {
            true => Err("no certificate found".into()),
            false => Ok(chain),
        })
        .map_err(|cause| unusable(certificate, "client certificate", cause))?;
    let secret = PrivateKeyDer::from_pem_file(&key.path)
        .map_err(|cause| unusable(key, "client key", cause.into()))?;
    // An invalid key, or one of another certificate, is reported here, not by an unclear handshake.
    CertifiedKey::from_der(
        chain.clone(),
        secret.clone_key(),
        &aws_lc_rs::default_provider(),
    )
    .map_err(|cause| unusable(key, "client key", cause.into()))?;
    Ok((chain, secret))
}

/// Reads the certificates of a host's settings, as a pull would.
pub(crate) fn try_certificates(host: &HostSettings) -> Result<(), PullError> {
    let mut roots = RootCertStore::empty();
    for file in &host.authorities {
        add_named(&mut roots, file)?;
    }
    host.client
        .as_ref()
        .map_or(Ok(()), |files| identity(files).map(drop))
}

fn unusable(file: &NamedFile, what: &str, cause: Cause) -> PullError {
    let path = file.path.display();
    let message = match file.named_at.as_str() {
        "" => format!("cannot use the {what} in {path}"),
        place => format!("{place}: cannot use the {what} in {path}"),
    };
    PullError::because(PullErrorKind::Internal, message, cause)
}

/// Trusts these certificate authorities.
pub(super) fn checked(roots: RootCertStore, identity: Option<&Identity>) -> ClientConfig {
    with_identity(client_config().with_root_certificates(roots), identity)
}

/// Accepts any certificate, for insecure registries.
pub(super) fn any(identity: Option<&Identity>) -> ClientConfig {
    let builder = client_config().dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(AcceptAnyServer));
    with_identity(builder, identity)
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<&Identity>,
) -> ClientConfig {
    match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .expect("the key was checked when it was read"),
    }
}
