//! A watch of the guest's pods. A command in the guest costs its host a tenth of a second of processor time, one of the
//! agent a second, so one follows all changes instead of many that ask again and again.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Deserializer, Value};

/// The pods that a watch has shown.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    /// The last state of each, by its name.
    latest: BTreeMap<String, Value>,
    /// Number of watches so far.
    watches: u32,
    /// Whether the last of them has begun to write.
    begun: bool,
    /// Bytes read of what all of them have written.
    read: u64,
    /// The beginning of a line or document whose end is not written yet.
    partial: Vec<u8>,
}

impl Pods {
    /// The command that starts to show all pods and their changes, in place of an earlier watch. The agent may not answer
    /// yet.
    pub(crate) fn start(&mut self) -> String {
        self.latest.clear();
        self.watches += 1;
        self.begun = false;
        let line = self.first_line();
        format!(
            "[ -e /run/watch.pid ] && kill -9 -$(cat /run/watch.pid); rm -f /run/watch.pid
setsid sh -c 'echo $$ > /run/watch.pid; printf %s \"{line}\"
until [ -S /run/rubelet/rubelet.sock ]; do sleep 0.1; done
until rubelet get pods --all-namespaces -w -o json; do sleep 0.3; done' > /dev/ttyS2 2> /run/watch.log &
until [ -s /run/watch.pid ]; do sleep 0.05; done"
        )
    }

    /// What a watch writes first: something of an earlier one may still be on its way.
    fn first_line(&self) -> String {
        format!("\nwatch {}\n", self.watches)
    }

    /// Where the bytes begin that were not read yet.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// Applies what was written from there on.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.read += bytes.len() as u64;
        self.partial.extend(bytes);
        if !self.begun {
            let line = self.first_line();
            let mut windows = self.partial.windows(line.len());
            let Some(start) = windows.position(|window| window == line.as_bytes()) else {
                return Ok(());
            };
            self.partial.drain(..start + line.len());
            self.begun = true;
        }
        let mut documents = Deserializer::from_slice(&self.partial).into_iter::<Value>();
        for pod in &mut documents {
            let pod = match pod {
                Ok(pod) => pod,
                Err(error) if error.is_eof() => break,
                Err(error) => return Err(error.into()),
            };
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            self.latest.insert(name.to_owned(), pod.clone());
        }
        let end = documents.byte_offset();
        self.partial.drain(..end);
        Ok(())
    }

    /// The last state of a pod.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.latest.get(name)
    }
}

#[test]
fn documents_are_read_in_pieces() -> Result<()> {
    let mut pods = Pods::default();
    assert!(pods.start().contains("\nwatch 1\n"));
    let text = "\nwatch 1\n{\"metadata\":{\"name\":\"a\"},\"n\":1}\n{\"metadata\":{\"name\":\"b\"}}\n\
        {\"metadata\":{\"name\":\"a\"},\"n\":2}\n";
    for piece in [&text[..5], &text[5..30], &text[30..60], &text[60..]] {
        pods.add(piece.as_bytes())?;
    }
    assert_eq!(pods.get("a").map(|pod| &pod["n"]), Some(&2.into()));
    assert!(pods.get("b").is_some());
    assert_eq!(pods.read(), text.len() as u64);
    Ok(())
}

#[test]
fn what_an_earlier_watch_has_written_is_no_part_of_the_next() -> Result<()> {
    let mut pods = Pods::default();
    pods.start();
    pods.add(b"\nwatch 1\n{\"metadata\":{\"name\":\"a\"}}\n{\"meta")?;
    pods.start();
    assert_eq!(pods.get("a"), None);
    pods.add(b"data\":{\"name\":\"b\"}}\n\nwatch 2\n{\"metadata\":{\"name\":\"c\"}}\n")?;
    assert_eq!(pods.get("b"), None);
    assert!(pods.get("c").is_some());
    Ok(())
}
