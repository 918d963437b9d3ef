//! A certificate signed by its own key, for a port that nobody issued one for.

use crate::certificates::key::{KeyError, NodeKey};
use crate::certificates::pair::{Certificate, Pair, PairError};
use crate::certificates::rules::is_valid;
use crate::certificates::store::{StoreError, make_folder, read, write_file};
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

/// How long a certificate made here is valid.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How long before its end it is made anew.
const EARLY: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// The key could not be made.
    #[error("can't make a key for the node's port")]
    Key(#[from] KeyError),
    /// The certificate could not be made.
    #[error("can't make a certificate for the node's port")]
    Make(#[source] rcgen::Error),
    /// The certificate that was made is none.
    #[error("can't use the certificate made for the node's port")]
    Pair(#[from] PairError),
    /// The files can't be read or written.
    #[error("can't keep the certificate of the node's port")]
    Store(#[from] StoreError),
}

/// Makes a certificate for a server called `name`, valid for a year from the day before `now`.
///
/// # Errors
/// The name can't stand in a certificate.
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

/// `kubelet.crt` and `kubelet.key` in a folder.
pub(super) struct Own {
    folder: PathBuf,
    name: Box<str>,
    clock: WallClock,
}

impl Own {
    pub(super) fn new(folder: &Path, name: &str, clock: &WallClock) -> Self {
        Self {
            folder: folder.to_owned(),
            name: name.into(),
            clock: WallClock::clone(clock),
        }
    }

    pub(super) fn certificate(&self) -> PathBuf {
        self.folder.join("kubelet.crt")
    }

    pub(super) fn key(&self) -> PathBuf {
        self.folder.join("kubelet.key")
    }

    /// What is there, or what is made now.
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
                        let folder = self.folder.display();
                        let error = ErrorChain(&error);
                        tracing::warn!(
                            "kubelet.crt and kubelet.key in {folder} are moved aside and made anew: {error}"
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
                tracing::warn!("the certificate of the node's port is not renewed: {error}");
                None
            }
        }
    }

    fn make(&self) -> Result<Pair, SelfSignedError> {
        let pair = self_signed(&self.name, (self.clock)())?;
        make_folder(&self.folder)?;
        write_file(&self.key(), pair.key_pem().as_bytes(), 0o600)?;
        write_file(&self.certificate(), pair.chain_pem().as_bytes(), 0o644)?;
        tracing::info!("made {}", self.certificate().display());
        Ok(pair)
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("folder", &self.folder).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Own;
    use crate::clock::WallClock;
    use jiff::Timestamp;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::sync::Arc;

    const DAY: i64 = 24 * 3600;

    fn own(folder: &Path, name: &str, days: i64) -> Own {
        let now = Timestamp::from_second(1_800_000_000 + days * DAY).unwrap();
        let clock: WallClock = Arc::new(move || now);
        Own::new(folder, name, &clock)
    }

    #[test]
    fn the_certificate_is_kept_over_restarts_until_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        let first = own(&pki, "node", 0).open().unwrap();
        assert_eq!(first.leaf().dns_names.first().unwrap(), "node");
        let mode = |name: &str| {
            let path = pki.join(name);
            fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode("kubelet.crt"), mode("kubelet.key")), (0o644, 0o600));
        let again = own(&pki, "node", 100).open().unwrap();
        assert_eq!(again.certificate().der(), first.certificate().der());
        let later = own(&pki, "node", 400).open().unwrap();
        assert_ne!(later.certificate().der(), first.certificate().der());
    }

    #[test]
    fn it_is_renewed_in_its_last_month_and_never_when_it_is_somebody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let pair = own(folder.path(), "node", 0).open().unwrap();
        assert!(
            own(folder.path(), "node", 300)
                .renewed(Some(pair.certificate()))
                .is_none()
        );
        assert!(
            own(folder.path(), "other", 340)
                .renewed(Some(pair.certificate()))
                .is_none()
        );
        let renewed = own(folder.path(), "node", 340).renewed(Some(pair.certificate()));
        assert!(renewed.unwrap().certificate().expires() > pair.certificate().expires());
    }

    #[test]
    fn what_is_damaged_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kubelet.crt"), "no certificate").unwrap();
        own(folder.path(), "node", 0).open().unwrap();
        let aside = folder.path().join("kubelet.crt.damaged");
        assert_eq!(fs::read_to_string(aside).unwrap(), "no certificate");
    }

    #[test]
    fn a_node_may_be_called_by_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let pair = own(folder.path(), "10.0.0.7", 0).open().unwrap();
        let address = pair.leaf().addresses.first().unwrap();
        assert_eq!(address.to_string(), "10.0.0.7");
    }
}
