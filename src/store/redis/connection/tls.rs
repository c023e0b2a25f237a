//! The certificates of encrypted connections: a mistake in them shows when the store is made, not at
//! the first call.

#[cfg(feature = "tls")]
pub(super) use with::{Tls, read};
#[cfg(not(feature = "tls"))]
pub(super) use without::{Tls, read};

#[cfg(not(feature = "tls"))]
mod without {
    use super::super::target::TlsFiles;
    use crate::model::StoreError;

    #[derive(Clone)]
    pub(in super::super) enum Tls {}

    pub(in super::super) fn read(_: &TlsFiles) -> Result<Tls, StoreError> {
        Err(StoreError::Invalid("url scheme: TLS needs sprag's feature \"tls\"".into()))
    }
}

#[cfg(feature = "tls")]
mod with {
    use super::super::target::TlsFiles;
    use crate::model::StoreError;
    use redis::{ClientTlsConfig, TlsCertificates};
    use rustls::{
        RootCertStore,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        sign::CertifiedKey,
    };
    use std::{fmt::Display, fs, path::Path, sync::Arc};

    pub(in super::super) type Tls = TlsCertificates;

    /// Reads the files, and sees whether they are what they should be and fit together.
    pub(in super::super) fn read(files: &TlsFiles) -> Result<Tls, StoreError> {
        let provider = provider();
        let client_tls = match (&files.cert, &files.key) {
            (Some(cert), Some(key)) => Some(client(cert, key, &provider)?),
            _ => None,
        };
        let root_cert = files.ca.as_ref().map(|ca| authority(ca)).transpose()?;
        Ok(TlsCertificates { client_tls, root_cert })
    }

    /// rustls asks the process for its cryptography, and panics if two are linked and none was
    /// chosen. Somebody else's choice stays.
    fn provider() -> Arc<CryptoProvider> {
        if CryptoProvider::get_default().is_none() {
            let ours = ring::default_provider().install_default();
            ours.unwrap_or_else(|_| {
                tracing::debug!("somebody else chose the cryptography meanwhile")
            });
        }
        let chosen = CryptoProvider::get_default().cloned();
        chosen.unwrap_or_else(|| ring::default_provider().into())
    }

    fn authority(ca: &Path) -> Result<Vec<u8>, StoreError> {
        let (text, certificates) = certificates("ca", ca)?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            roots.add(certificate).map_err(|e| unusable("ca", ca, &e))?;
        }
        Ok(text)
    }

    fn client(
        cert: &Path,
        key: &Path,
        provider: &CryptoProvider,
    ) -> Result<ClientTlsConfig, StoreError> {
        let (client_cert, chain) = certificates("cert", cert)?;
        let client_key = contents("key", key)?;
        let private = PrivateKeyDer::from_pem_slice(&client_key)
            .map_err(|_| unusable("key", key, &"no private key in PEM"))?;
        CertifiedKey::from_der(chain, private, provider).map_err(|why| {
            let cert = cert.display();
            unusable("key", key, &format_args!("does not fit cert={cert}: {why}"))
        })?;
        Ok(ClientTlsConfig { client_cert, client_key })
    }

    /// The file's text, and the certificates in it.
    fn certificates(
        option: &str,
        file: &Path,
    ) -> Result<(Vec<u8>, Vec<CertificateDer<'static>>), StoreError> {
        let text = contents(option, file)?;
        let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        match found {
            Ok(found) if !found.is_empty() => Ok((text, found)),
            _ => Err(unusable(option, file, &"no certificate in PEM")),
        }
    }

    fn contents(option: &str, file: &Path) -> Result<Vec<u8>, StoreError> {
        // Somebody may have put the contents in the name's place.
        if file.as_os_str().to_string_lossy().contains("-----BEGIN") {
            let text = format!("url {option}: must be a file's name, not its text");
            return Err(StoreError::Invalid(text));
        }
        fs::read(file).map_err(|e| unusable(option, file, &e))
    }

    fn unusable(option: &str, file: &Path, why: &dyn Display) -> StoreError {
        StoreError::Invalid(format!("url {option}: {}: {why}", file.display()))
    }
}
