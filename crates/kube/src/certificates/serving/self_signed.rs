//! A self-signed certificate, for a port without an issued one.

use crate::certificates::key::{KeyError, NodeKey};
use crate::certificates::pair::{Certificate, Pair, PairError};
use crate::certificates::rules::is_valid;
use crate::certificates::store::{StoreError, make_directory, read, write_file};
use crate::clock::WallClock;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use rubelet_base::ErrorChain;
use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Validity of a self-signed certificate.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Time before its expiry at which it is replaced.
const EARLY: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// The key could not be made.
    #[error("cannot generate the key of the serving certificate")]
    Key(#[from] KeyError),
    /// The certificate could not be made.
    #[error("cannot create the self-signed serving certificate")]
    Make(#[source] rcgen::Error),
    /// The new certificate cannot be used.
    #[error("cannot use the self-signed serving certificate")]
    Pair(#[from] PairError),
    /// The files can't be read or written.
    #[error("cannot store the self-signed serving certificate")]
    Store(#[from] StoreError),
}

/// Makes a certificate for a server called `name`, valid for a year from the day before `now`.
///
/// # Errors
/// The name can't be in a certificate.
pub fn self_signed(name: &str, now: Timestamp) -> Result<Pair, SelfSignedError> {
    let key = NodeKey::generate()?;
    let mut params = CertificateParams::default();
    let stamp = now.as_second();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("{name}@{stamp}"));
    params.subject_alt_names.push(match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into().map_err(SelfSignedError::Make)?),
    });
    let midnight = |(year, month, day)| date_time_ymd(year, month, day);
    params.not_before = midnight(day(now - SignedDuration::from_hours(24)));
    params.not_after = midnight(day(now + LIFE));
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params
        .self_signed(key.pair())
        .map_err(SelfSignedError::Make)?;
    Ok(Pair::new(vec![certificate.der().clone()], key.der())?)
}

/// Year, month and day of `at`.
fn day(at: Timestamp) -> (i32, u8, u8) {
    let date = at.to_zoned(TimeZone::UTC).date();
    let part = |number: i8| u8::try_from(number).unwrap_or(1);
    (i32::from(date.year()), part(date.month()), part(date.day()))
}

/// `kubelet.crt` and `kubelet.key` in a directory.
pub(super) struct SelfSigned {
    directory: PathBuf,
    name: Box<str>,
    clock: WallClock,
}

impl SelfSigned {
    pub(super) fn new(directory: &Path, name: &str, clock: &WallClock) -> Self {
        Self {
            directory: directory.to_owned(),
            name: name.into(),
            clock: WallClock::clone(clock),
        }
    }

    pub(super) fn certificate(&self) -> PathBuf {
        self.directory.join("kubelet.crt")
    }

    pub(super) fn key(&self) -> PathBuf {
        self.directory.join("kubelet.key")
    }

    /// The stored pair, or a new one.
    pub(super) fn open(&self) -> Result<Pair, SelfSignedError> {
        let (certificate, key) = (self.certificate(), self.key());
        match (read(&certificate)?, read(&key)?) {
            (None, None) => self.make(),
            (chain, key_text) => {
                let pair =
                    Pair::from_pem(&chain.unwrap_or_default(), &key_text.unwrap_or_default());
                match pair {
                    Ok(pair) if is_valid(pair.certificate().expires(), (self.clock)()) => Ok(pair),
                    Ok(_) => self.make(),
                    Err(error) => {
                        let directory = self.directory.display();
                        let error = ErrorChain(&error);
                        tracing::warn!(
                            "Moving kubelet.crt and kubelet.key in {directory} aside and creating new ones: {error}"
                        );
                        for path in [certificate, key] {
                            let aside = path.with_extension(match path.extension() {
                                Some(ending) => format!("{}.damaged", ending.display()),
                                None => "damaged".to_owned(),
                            });
                            // One of the two may be missing.
                            drop(fs::rename(&path, aside));
                        }
                        self.make()
                    }
                }
            }
        }
    }

    /// A new one, if `current` was made here and is about to expire.
    pub(super) fn renewed(&self, current: Option<&Certificate>) -> Option<Pair> {
        let current = current?;
        let ours = format!("{}@", self.name);
        let is_ours = current.leaf().common_name.starts_with(&ours);
        let expires = current.expires();
        let early = expires.checked_sub(EARLY).unwrap_or(expires);
        if !is_ours || is_valid(early, (self.clock)()) {
            return None;
        }
        match self.make() {
            Ok(pair) => Some(pair),
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::warn!("Cannot renew the self-signed serving certificate: {error}");
                None
            }
        }
    }

    fn make(&self) -> Result<Pair, SelfSignedError> {
        let pair = self_signed(&self.name, (self.clock)())?;
        make_directory(&self.directory)?;
        write_file(&self.key(), pair.key_pem().as_bytes(), 0o600)?;
        write_file(&self.certificate(), pair.chain_pem().as_bytes(), 0o644)?;
        tracing::info!("Created {}", self.certificate().display());
        Ok(pair)
    }
}

impl fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfSigned")
            .field("directory", &self.directory)
            .finish()
    }
}

#[cfg(test)]
mod tests;
