//! The calls to the runtime.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_cri::{CriError, CriErrorKind, CriResult, ImageService, RuntimeService, v1};
use rubelet_node_plan::node_status::object::Node;

use super::{
    super::{NodeView, follow_images, forward_pod_cidrs, view::LocalNode},
    *,
};

/// A runtime with one image that grows each time it is asked.
#[derive(Default)]
struct Runtime {
    lists: Mutex<u64>,
    told: Mutex<Vec<String>>,
    fails: Mutex<bool>,
}

#[async_trait]
impl ImageService for Runtime {
    async fn list_images(&self, _: v1::ListImagesRequest) -> CriResult<v1::ListImagesResponse> {
        let mut lists = self.lists.lock();
        *lists += 1;
        let image = v1::Image {
            repo_tags: vec!["busybox:1".to_owned()],
            size: *lists,
            ..v1::Image::default()
        };
        Ok(v1::ListImagesResponse {
            images: vec![image],
        })
    }

    async fn image_fs_info(&self, _: v1::ImageFsInfoRequest) -> CriResult<v1::ImageFsInfoResponse> {
        let usage = v1::FilesystemUsage {
            fs_id: Some(v1::FilesystemIdentifier {
                mountpoint: "/var/lib/model".to_owned(),
            }),
            ..v1::FilesystemUsage::default()
        };
        Ok(v1::ImageFsInfoResponse {
            image_filesystems: vec![usage],
            ..v1::ImageFsInfoResponse::default()
        })
    }
}

#[async_trait]
impl RuntimeService for Runtime {
    async fn update_runtime_config(
        &self,
        request: v1::UpdateRuntimeConfigRequest,
    ) -> CriResult<v1::UpdateRuntimeConfigResponse> {
        if *self.fails.lock() {
            return Err(CriError::new(
                "UpdateRuntimeConfig",
                CriErrorKind::Unavailable,
                "away",
            ));
        }
        let network = request.runtime_config.and_then(|one| one.network_config);
        let mut told = self.told.lock();
        told.push(network.unwrap_or_default().pod_cidr);
        Ok(v1::UpdateRuntimeConfigResponse {})
    }
}

#[tokio::test(start_paused = true)]
async fn images_are_listed_when_the_runtime_is_ready_and_rarely_after_that() {
    let runtime = Arc::new(Runtime::default());
    let state = watch::Sender::new(RuntimeState::default());
    let pulls = watch::Sender::new(0);
    let (out, images) = watch::channel(RuntimeImages::default());
    let service = Arc::clone(&runtime) as Arc<dyn ImageService>;
    let (ready_state, pulled) = (state.subscribe(), pulls.subscribe());
    let task = tokio::spawn(follow_images(service, ready_state, pulled, Some(50), out));
    let lists = || *runtime.lists.lock();
    seconds(60).await;
    assert_eq!(lists(), 0);
    state.send_replace(ready());
    seconds(1).await;
    assert_eq!(lists(), 1);
    let seen = images.borrow().clone();
    assert_eq!(&*seen.images[0].names[0], "busybox:1");
    assert_eq!(seen.file_system.unwrap().to_str(), Some("/var/lib/model"));
    for _ in 0..5 {
        pulls.send_modify(|count| *count += 1);
        seconds(1).await;
    }
    assert_eq!(lists(), 1, "more may come");
    seconds(6).await;
    assert_eq!(lists(), 2, "all pulls together");
    seconds(3000).await;
    assert_eq!(lists(), 12);
    task.abort();
}

#[test]
fn the_node_says_how_long_objects_that_are_not_watched_are_fresh() {
    for (text, ttl) in [("15", Some(15)), ("0", Some(0)), ("soon", None)] {
        let mut shown = Node::default();
        let annotations = &mut shown.metadata.annotations;
        annotations.insert("node.alpha.kubernetes.io/ttl".into(), text.into());
        let view = NodeView::new(&shown, &LocalNode::default());
        assert_eq!(view.object_ttl, ttl.map(Duration::from_secs));
    }
}

#[tokio::test(start_paused = true)]
async fn the_runtime_gets_the_addresses_of_pods_until_it_takes_them() {
    let runtime = Arc::new(Runtime::default());
    *runtime.fails.lock() = true;
    let (node, shown) = watch::channel(None);
    let service = Arc::clone(&runtime) as Arc<dyn RuntimeService>;
    let task = tokio::spawn(forward_pod_cidrs(service, shown));
    let show = |cidrs: &[&str]| {
        let mut shown = Node::default();
        shown.spec.pod_cidrs = cidrs.iter().map(|cidr| Box::from(*cidr)).collect();
        let view = NodeView::new(&shown, &LocalNode::default());
        node.send_replace(Some(Arc::new(view)));
    };
    let told = || std::mem::take(&mut *runtime.told.lock());
    show(&[]);
    seconds(60).await;
    show(&["10.1.0.0/24", "fd00:1::/64"]);
    seconds(60).await;
    assert!(told().is_empty());
    *runtime.fails.lock() = false;
    seconds(11).await;
    assert_eq!(told(), ["10.1.0.0/24,fd00:1::/64"]);
    show(&["10.1.0.0/24", "fd00:1::/64"]);
    seconds(60).await;
    assert!(told().is_empty());
    show(&["10.2.0.0/24"]);
    seconds(1).await;
    assert_eq!(told(), ["10.2.0.0/24"]);
    task.abort();
}
