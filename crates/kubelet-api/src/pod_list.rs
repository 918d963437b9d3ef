//! `/pods` and `/runningpods/`: PodLists, rendered while they are sent.

use std::io;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use rubelet_http_core::{
    resource::Resource,
    respond::{self, Body},
};
use rubelet_server::{NodeView, RunningPod};
use serde_json::{Value, json};

/// A response is sent in chunks of about this size.
const PIECE: usize = 16 * 1024;

/// All pods of the node, with the status that the node reports.
pub(super) fn pods(view: &dyn NodeView) -> Response<Body> {
    // As the API server has them: the versions of the local API mean nothing here, and items of a
    // list carry neither kind nor version of the API.
    let items = view.list(Resource::Pods).items.into_iter();
    list(items.map(|object| object.body.render()))
}

/// The pods that have running containers, with little more than their names.
pub(super) fn running_pods(view: &dyn NodeView) -> Response<Body> {
    list(view.running_pods().into_iter().map(|pod| draw(&pod)))
}

fn draw(pod: &RunningPod) -> Value {
    let container =
        |(name, image): &(String, String)| json!({ "name": name, "image": image, "resources": {} });
    json!({
        "metadata": { "name": pod.name, "namespace": pod.namespace, "uid": pod.uid },
        "spec": { "containers": pod.containers.iter().map(container).collect::<Vec<_>>() },
        "status": {},
    })
}

fn list(items: impl Iterator<Item = Value> + Send + 'static) -> Response<Body> {
    let head = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":["#;
    let state = Some((items.fuse(), head.to_owned(), true));
    let pieces = stream::unfold(state, |state| async move {
        let (mut items, mut piece, mut first) = state?;
        while piece.len() < PIECE {
            let Some(item) = items.next() else {
                piece.push_str("]}\n");
                return Some((Ok::<_, io::Error>(Bytes::from(piece)), None));
            };
            if !std::mem::take(&mut first) {
                piece.push(',');
            }
            piece.push_str(&item.to_string());
        }
        let rest = Some((items, String::new(), first));
        Some((Ok(Bytes::from(piece)), rest))
    });
    respond::json_pieces(pieces)
}
