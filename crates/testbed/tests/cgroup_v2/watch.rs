//! A watch of the guest's pods. A command of the agent in the guest costs its host about a second of
//! processor time, so one follows all changes instead of many that ask again and again.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Deserializer, Value};

/// Starts to write all changes into a file, in place of an earlier watch. The agent may not answer yet.
pub(crate) const START: &str = "[ -e /run/watch.pid ] && kill -9 -$(cat /run/watch.pid); rm -f /run/pods
setsid sh -c 'echo $$ > /run/watch.pid
until [ -S /run/rubelet/rubelet.sock ]; do sleep 0.1; done
until rubelet get pods --all-namespaces -w -o json; do sleep 0.3; done' >> /run/pods 2> /run/watch.log &
until [ -s /run/watch.pid ] && [ -e /run/pods ]; do sleep 0.05; done";

/// The pods that a watch has shown.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    /// The last state of each, by its name.
    latest: BTreeMap<String, Value>,
    /// Bytes read of the file.
    read: usize,
    /// The beginning of a document whose end is not written yet.
    partial: String,
}

impl Pods {
    /// The command that prints what the file has more.
    pub(crate) fn command(&self) -> String {
        format!("sleep 0.1; tail -c +{} /run/pods", self.read + 1)
    }

    /// Applies what that command printed.
    pub(crate) fn add(&mut self, text: &str) -> Result<()> {
        self.read += text.len();
        self.partial.push_str(text);
        let mut documents = Deserializer::from_str(&self.partial).into_iter::<Value>();
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
    let text = "{\"metadata\":{\"name\":\"a\"},\"n\":1}\n{\"metadata\":{\"name\":\"b\"}}\n\
        {\"metadata\":{\"name\":\"a\"},\"n\":2}\n";
    for piece in [&text[..20], &text[20..50], &text[50..]] {
        pods.add(piece)?;
    }
    assert_eq!(pods.get("a").map(|pod| &pod["n"]), Some(&2.into()));
    assert!(pods.get("b").is_some());
    assert_eq!(
        pods.command(),
        format!("sleep 0.1; tail -c +{} /run/pods", text.len() + 1)
    );
    Ok(())
}
