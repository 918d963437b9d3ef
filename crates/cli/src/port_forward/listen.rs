//! The local ends of forwarded ports.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;

use super::{super::failure::CommandError, ports::PortPair};

/// A listener and the destination of its connections.
pub(super) struct Forward {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) remote: u16,
}

/// Addresses of `--address`, and whether one of them is enough.
pub(super) struct Addresses {
    sets: Vec<Vec<IpAddr>>,
}

impl Addresses {
    /// `localhost` is both loopback addresses, of which a machine may have only one.
    pub(super) fn parse(words: &[String]) -> Result<Self, CommandError> {
        let sets = words.iter().map(|word| match word.as_str() {
            "localhost" => Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
            word => match word.parse() {
                Ok(address) => Ok(vec![address]),
                Err(_) => Err(CommandError::Usage(format!(
                    "--address {word:?} is neither an IP address nor localhost"
                ))),
            },
        });
        let sets = sets.collect::<Result<_, _>>()?;
        Ok(Self { sets })
    }

    /// Listens on the port on all addresses.
    pub(super) async fn listen(&self, port: PortPair) -> Result<Vec<Forward>, Vec<String>> {
        let (mut forwards, mut failures) = (Vec::new(), Vec::new());
        let mut local = port.local;
        for set in &self.sets {
            let (before, mut errors) = (forwards.len(), Vec::new());
            for ip in set {
                match listen(SocketAddr::new(*ip, local), port.remote).await {
                    Ok(forward) => {
                        // A port that the kernel chose is used for each address.
                        local = forward.address.port();
                        forwards.push(forward);
                    }
                    Err(error) => errors.push(format!("{}: {error}", SocketAddr::new(*ip, local))),
                }
            }
            if forwards.len() == before {
                failures.append(&mut errors);
            }
        }
        match failures.is_empty() {
            true => Ok(forwards),
            false => Err(failures),
        }
    }
}

async fn listen(address: SocketAddr, remote: u16) -> io::Result<Forward> {
    let listener = TcpListener::bind(address).await?;
    Ok(Forward {
        address: listener.local_addr()?,
        listener,
        remote,
    })
}
