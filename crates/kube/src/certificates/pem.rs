//! Writing PEM; reading it is done by rustls.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// One section of PEM: `label` and the DER behind it, 64 characters a line.
pub(super) fn section(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}

#[cfg(test)]
mod tests {
    use super::section;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    #[test]
    fn what_is_written_is_read_back() {
        for length in [0, 1, 47, 48, 49, 500] {
            let der: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            let text = section("CERTIFICATE", &der);
            assert!(text.lines().all(|line| line.len() <= 64), "{text}");
            let read = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
            assert_eq!(read.as_ref(), der);
        }
    }
}
